//! `/metrics` and `/healthz`.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use tokio::net::TcpListener;

use crate::metrics::Metrics;

/// Serves both until the task is dropped. Says where it listens.
///
/// # Errors
/// If the address cannot be listened on.
pub async fn serve(
    address: SocketAddr,
    metrics: Arc<Metrics>,
) -> std::io::Result<(SocketAddr, tokio::task::JoinHandle<()>)> {
    let listener = TcpListener::bind(address).await?;
    let address = listener.local_addr()?;
    let router = Router::new().route("/metrics", get(text)).route("/healthz", get(health)).with_state(metrics);
    let task = tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, router).await {
            tracing::error!(%error, "metrics are no longer served");
        }
    });
    Ok((address, task))
}

async fn text(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], metrics.text())
}

async fn health(State(metrics): State<Arc<Metrics>>) -> impl IntoResponse {
    if metrics.is_healthy() {
        (StatusCode::OK, "ok\n")
    } else {
        (StatusCode::SERVICE_UNAVAILABLE, "the optimiser's thread does not answer\n")
    }
}
