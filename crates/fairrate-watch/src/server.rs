//! The server of the page: fixed routes, each for the token in the address alone. No part of a request is ever the name
//! of a file.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, Instant};

use axum::body::Body;
use axum::extract::{Path, Query, Request, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::middleware::{self, Next};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{get, post};
use axum::{Json, Router};
use hyper::server::conn::http1;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::service::TowerToHyperService;
use serde::{Deserialize, Serialize};
use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};

use crate::assets::{ASSETS, Asset};
use crate::flows;
use crate::guard::Guard;
use crate::run::Run;
use crate::samples::Quantity;

/// Largest number of connections at a time.
const CONNECTIONS_MAX: usize = 128;
/// Longest time in which the head of a request must have come.
const HEAD_TIMEOUT: Duration = Duration::from_secs(10);
/// Least time between two looks at the files of a run that goes on.
const FOLLOW_EVERY: Duration = Duration::from_secs(1);
/// Times that a look takes which pass until the next one: large tables take long to read.
const LOOKS_APART: u32 = 4;
/// Largest number of values in an answer with frames.
const VALUES_MAX: usize = 4 << 20;
/// Largest number of flows in an answer.
const FLOWS_SHOWN: usize = 20;

/// Headers of every answer: nothing from elsewhere is loaded, nothing is kept, and no other page can show or read this
/// one.
const HEADERS: [(header::HeaderName, &str); 7] = [
    (
        header::CONTENT_SECURITY_POLICY,
        "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; base-uri 'none'; form-action \
         'none'; frame-ancestors 'none'",
    ),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (header::CACHE_CONTROL, "no-store"),
    (header::X_FRAME_OPTIONS, "DENY"),
    (header::HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
];

/// The runs of a page, and how it can act on them.
pub struct Page {
    guard: Guard,
    runs: Vec<RwLock<Arc<Run>>>,
    /// Stops the run that the page follows, if it can.
    stop: Option<Box<dyn Fn() + Send + Sync>>,
    /// Tables are read by one request at a time.
    reading: Semaphore,
}

impl Page {
    /// Returns the page of one or two `runs` behind `guard`. A request to stop calls `stop`.
    pub fn new(guard: Guard, runs: Vec<Run>, stop: Option<Box<dyn Fn() + Send + Sync>>) -> Self {
        let runs = runs.into_iter().map(|run| RwLock::new(Arc::new(run))).collect();
        Self { guard, runs, stop, reading: Semaphore::new(1) }
    }

    /// Returns the run with the number `i`.
    fn run(&self, i: usize) -> Result<Arc<Run>, StatusCode> {
        let run = self.runs.get(i).ok_or(StatusCode::NOT_FOUND)?;
        Ok(Arc::clone(&run.read().unwrap_or_else(PoisonError::into_inner)))
    }

    /// Reads once more the runs that have not ended and whose files have changed.
    fn look(&self) {
        for place in &self.runs {
            let run = Arc::clone(&place.read().unwrap_or_else(PoisonError::into_inner));
            if !run.is_running() {
                continue;
            }
            // A run that cannot be read at this moment stays as it was, and is read again at the next look.
            if let Ok(Some(new)) = run.reopened() {
                *place.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(new);
            }
        }
    }
}

/// Serves `page` on `listener` until `end` is true or its sender is gone.
pub async fn serve(listener: TcpListener, page: Arc<Page>, mut end: watch::Receiver<bool>) {
    let service = TowerToHyperService::new(router(Arc::clone(&page)));
    let connections = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    tokio::spawn(follow(page));
    while !*end.borrow() {
        let next = async {
            let permit = Arc::clone(&connections).acquire_owned().await.expect("it is never closed");
            (listener.accept().await, permit)
        };
        let (taken, permit) = tokio::select! {
            taken = next => taken,
            changed = end.changed() => match changed {
                Ok(()) => continue,
                Err(_) => break,
            },
        };
        let Ok((stream, _)) = taken else {
            // A connection that went away before it was taken, or too many open files: both pass.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        let service = service.clone();
        tokio::spawn(async move {
            let mut http = http1::Builder::new();
            http.timer(TokioTimer::new()).header_read_timeout(HEAD_TIMEOUT);
            // Errors are of the other side.
            let _ = http.serve_connection(TokioIo::new(stream), service).await;
            drop(permit);
        });
    }
}

/// Looks at the files of runs that go on, again and again.
async fn follow(page: Arc<Page>) {
    let mut rest = FOLLOW_EVERY;
    loop {
        tokio::time::sleep(rest).await;
        let (page, begin) = (Arc::clone(&page), Instant::now());
        let _ = tokio::task::spawn_blocking(move || page.look()).await;
        rest = FOLLOW_EVERY.max(LOOKS_APART * begin.elapsed());
    }
}

fn router(page: Arc<Page>) -> Router {
    let of_run = Router::new()
        .route("/network", get(network))
        .route("/times", get(times))
        .route("/frames", get(frames))
        .route("/ports/{port}", get(port))
        .route("/flows", get(active))
        .route("/flows/{flow}", get(flow));
    Router::new()
        .route("/{token}/", get(|| async { asset(&ASSETS[0]) }))
        .route("/{token}/{name}", get(named))
        .route("/{token}/api/runs", get(runs))
        .nest("/{token}/api/runs/{run}", of_run)
        .route("/{token}/api/stop", post(stop))
        .layer(middleware::from_fn_with_state(Arc::clone(&page), admit))
        .with_state(page)
}

/// Refuses what [`Guard::admit`] does not let pass, and sets the headers of all answers.
async fn admit(State(page): State<Arc<Page>>, request: Request, next: Next) -> Response {
    let is_admitted = page.guard.admit(request.method(), request.uri().path(), request.headers()).is_some();
    let mut answer = if is_admitted { next.run(request).await } else { StatusCode::FORBIDDEN.into_response() };
    for (name, value) in HEADERS {
        answer.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    answer
}

fn asset((_, kind, content): &Asset) -> Response {
    ([(header::CONTENT_TYPE, *kind)], *content).into_response()
}

async fn named(Path((_, name)): Path<(String, String)>) -> Result<Response, StatusCode> {
    ASSETS.iter().find(|asset| asset.0 == name).map(asset).ok_or(StatusCode::NOT_FOUND)
}

async fn runs(State(page): State<Arc<Page>>) -> Response {
    let runs: Vec<Arc<Run>> = (0..page.runs.len()).filter_map(|i| page.run(i).ok()).collect();
    let can_stop = page.stop.is_some() && runs.iter().any(|run| run.is_running());
    let about: Vec<_> = runs.iter().map(|run| run.about()).collect();
    Json(serde_json::json!({ "runs": about, "can_stop": can_stop })).into_response()
}

/// The run of an address, `/TOKEN/api/runs/RUN/...`.
#[derive(Deserialize)]
struct OfRun {
    run: usize,
}

async fn network(State(page): State<Arc<Page>>, Path(of): Path<OfRun>) -> Result<Response, StatusCode> {
    Ok(Json(&page.run(of.run)?.network).into_response())
}

/// The samples of a run in outline.
#[derive(Serialize)]
struct Outline<'a> {
    generation: u32,
    times: &'a [u64],
    sampled: &'a [u32],
    /// The longest queue of all samples, in bytes.
    largest_queue: u32,
}

async fn times(State(page): State<Arc<Page>>, Path(of): Path<OfRun>) -> Result<Response, StatusCode> {
    let run = page.run(of.run)?;
    let (times, sampled) = (run.samples.times(), run.samples.sampled());
    let largest_queue = run.samples.largest_queue();
    Ok(Json(Outline { generation: run.generation, times, sampled, largest_queue }).into_response())
}

/// The frames that a request asks for.
#[derive(Deserialize)]
struct Frames {
    quantity: String,
    from: usize,
    n: usize,
}

async fn frames(
    State(page): State<Arc<Page>>,
    Path(of): Path<OfRun>,
    Query(asked): Query<Frames>,
) -> Result<Response, StatusCode> {
    let run = page.run(of.run)?;
    let quantity = Quantity::by_name(&asked.quantity).ok_or(StatusCode::BAD_REQUEST)?;
    let most = (VALUES_MAX / run.samples.sampled().len().max(1)).max(1);
    let n = asked.n.min(most);
    let bytes = in_background(&page, move || run.samples.frames(&run.network, quantity, asked.from, n)).await?;
    Ok(([(header::CONTENT_TYPE, "application/octet-stream")], Body::from(bytes)).into_response())
}

/// A port or flow of a run.
#[derive(Deserialize)]
struct One {
    run: usize,
    port: Option<usize>,
    flow: Option<u32>,
}

async fn port(State(page): State<Arc<Page>>, Path(one): Path<One>) -> Result<Response, StatusCode> {
    let run = page.run(one.run)?;
    let port = one.port.filter(|&port| port < run.network.links.len() * 2).ok_or(StatusCode::NOT_FOUND)?;
    let series = in_background(&page, move || run.samples.series(&run.network, port)).await?;
    Ok(Json(series).into_response())
}

/// The time for which a request asks.
#[derive(Deserialize)]
struct At {
    t_ns: u64,
}

async fn active(
    State(page): State<Arc<Page>>,
    Path(of): Path<OfRun>,
    Query(at): Query<At>,
) -> Result<Response, StatusCode> {
    let run = page.run(of.run)?;
    in_background(&page, move || Json(run.flows.active(at.t_ns, FLOWS_SHOWN)).into_response()).await
}

async fn flow(State(page): State<Arc<Page>>, Path(one): Path<One>) -> Result<Response, StatusCode> {
    let run = page.run(one.run)?;
    let id = one.flow.ok_or(StatusCode::NOT_FOUND)?;
    let known = run.flows.get(id).copied();
    let series = in_background(&page, move || flows::series(&run.results, id)).await?;
    let series = series.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)?;
    if known.is_none() && series.t_ns.is_empty() {
        return Err(StatusCode::NOT_FOUND);
    }
    Ok(Json(serde_json::json!({ "flow": known, "series": series })).into_response())
}

async fn stop(State(page): State<Arc<Page>>) -> StatusCode {
    match &page.stop {
        Some(stop) => {
            stop();
            StatusCode::NO_CONTENT
        }
        None => StatusCode::CONFLICT,
    }
}

/// Does `work` beside the server, one piece of work at a time.
async fn in_background<T: Send + 'static>(
    page: &Page,
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, StatusCode> {
    let _turn = page.reading.acquire().await.map_err(|_| StatusCode::SERVICE_UNAVAILABLE)?;
    tokio::task::spawn_blocking(work).await.map_err(|_| StatusCode::INTERNAL_SERVER_ERROR)
}
