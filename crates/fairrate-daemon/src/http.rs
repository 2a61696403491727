//! A small HTTP server for pages such as `/metrics` and `/healthz`.
//!
//! It trusts no client: a request has [`PATIENCE`] from its first byte to the last byte of the answer, [`MAX_HEADER`]
//! bytes of header, and no body. There are at most [`MAX_OPEN`] connections. A further connection ends the oldest, so
//! that silent connections lock no client out. The server has a thread of its own.

use std::collections::{HashMap, VecDeque};
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Notify;
use tokio::task::AbortHandle;
use tokio::time::timeout;

/// The time from accepting a connection to closing it.
pub const PATIENCE: Duration = Duration::from_secs(5);

/// Largest number of bytes of a request's line and headers.
pub const MAX_HEADER: usize = 8 * 1024;

/// Largest number of connections, and so of descriptors, apart from a few of the server's own.
pub const MAX_OPEN: usize = 16;

/// The age up to which a page is served again, so that a flood of requests makes few pages.
const FRESH: Duration = Duration::from_millis(50);

/// Number of bytes after a request that are read so that the answer is not lost in a reset.
const MAX_REST: usize = 64 * 1024;

/// The answer to a request for a path.
#[derive(Clone, Debug)]
pub struct Page {
    /// `true` if the status is 200; otherwise it is 503.
    pub is_ok: bool,
    /// The value of `Content-Type`.
    pub content_type: &'static str,
    /// The text.
    pub body: String,
}

/// The function that makes the page of a path; it returns `None` if there is no such path.
pub type MakePage = dyn Fn(&str) -> Option<Page> + Send + Sync;

/// A server of pages, which ends when it is dropped.
#[derive(Debug)]
pub struct PageServer {
    address: SocketAddr,
    stop: Arc<Notify>,
    thread: Option<JoinHandle<()>>,
}

struct Pages {
    make: Box<MakePage>,
    /// The pages made last. Only existing paths are stored.
    made: Mutex<HashMap<String, (Instant, Page)>>,
}

impl PageServer {
    /// Starts a server on `address`; `make` makes its pages.
    ///
    /// # Errors
    /// If the address cannot be listened on, or no thread is available.
    pub fn start(address: SocketAddr, make: impl Fn(&str) -> Option<Page> + Send + Sync + 'static) -> io::Result<Self> {
        let listener = std::net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        let address = listener.local_addr()?;
        let (stop, pages) = (Arc::new(Notify::new()), Pages { make: Box::new(make), made: Mutex::default() });
        let stopped = Arc::clone(&stop);
        // The runtime is made in the thread: the caller may be in another one, where none may be dropped.
        let run = move || match listen(listener) {
            Ok((runtime, listener)) => runtime.block_on(accept(listener, Arc::new(pages), &stopped)),
            Err(error) => tracing::error!(%error, "no pages can be served"),
        };
        let thread = std::thread::Builder::new().name("fairrate-pages".into()).spawn(run)?;
        Ok(Self { address, stop, thread: Some(thread) })
    }

    /// Returns the address on which it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }
}

impl Drop for PageServer {
    fn drop(&mut self) {
        self.stop.notify_one();
        if let Some(thread) = self.thread.take() {
            // A panic of that thread has already been printed.
            let _ = thread.join();
        }
    }
}

/// Returns a runtime in which `listener` accepts connections.
fn listen(listener: std::net::TcpListener) -> io::Result<(Runtime, TcpListener)> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let listener = {
        let _entered = runtime.enter();
        TcpListener::from_std(listener)?
    };
    Ok((runtime, listener))
}

async fn accept(listener: TcpListener, pages: Arc<Pages>, stop: &Notify) {
    let mut open: VecDeque<AbortHandle> = VecDeque::new();
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = stop.notified() => return,
        };
        let Ok((stream, _)) = accepted else {
            // The usual cause is a lack of file descriptors; some will be free again.
            tokio::time::sleep(Duration::from_millis(50)).await;
            continue;
        };
        open.retain(|task| !task.is_finished());
        if open.len() == MAX_OPEN
            && let Some(oldest) = open.pop_front()
        {
            oldest.abort();
        }
        let pages = Arc::clone(&pages);
        let task = tokio::spawn(async move {
            // An error concerns the other side only.
            let _ = timeout(PATIENCE, serve(stream, &pages)).await;
        });
        open.push_back(task.abort_handle());
        // Lets an aborted task close its connection now, before the next one is accepted.
        tokio::task::yield_now().await;
    }
}

async fn serve(mut stream: TcpStream, pages: &Pages) -> io::Result<()> {
    let answer = match request(&mut stream).await? {
        Ok(path) => match pages.page(&path) {
            Some(page) if page.is_ok => answer("200 OK", page.content_type, &page.body),
            Some(page) => answer("503 Service Unavailable", page.content_type, &page.body),
            None => answer("404 Not Found", TEXT, "there is no such page\n"),
        },
        Err(status) => answer(status, TEXT, ""),
    };
    stream.write_all(answer.as_bytes()).await?;
    stream.shutdown().await?;
    // If the connection were closed with unread data, the answer could be lost.
    let (mut rest, mut buffer) = (0, [0; 1024]);
    while rest < MAX_REST {
        match stream.read(&mut buffer).await? {
            0 => break,
            n => rest += n,
        }
    }
    Ok(())
}

/// The content type of pages in plain text.
pub const TEXT: &str = "text/plain; charset=utf-8";

fn answer(status: &str, content_type: &str, body: &str) -> String {
    let length = body.len();
    format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )
}

/// Reads a request and returns its path, or the status of the error.
async fn request(stream: &mut TcpStream) -> io::Result<Result<String, &'static str>> {
    let (mut header, mut buffer) = (Vec::new(), [0; 1024]);
    while !header.windows(4).any(|end| end == b"\r\n\r\n") {
        if MAX_HEADER < header.len() {
            return Ok(Err("431 Request Header Fields Too Large"));
        }
        match stream.read(&mut buffer).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => header.extend_from_slice(&buffer[..n]),
        }
    }
    Ok(path(&header))
}

fn path(header: &[u8]) -> Result<String, &'static str> {
    let line = header.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let line = std::str::from_utf8(line).map_err(|_| "400 Bad Request")?;
    let mut words = line.split(' ');
    match (words.next(), words.next(), words.next(), words.next()) {
        (Some("GET"), Some(target), Some("HTTP/1.0" | "HTTP/1.1"), None) => {
            Ok(target.split('?').next().unwrap_or_default().to_owned())
        }
        (Some(_), Some(_), Some("HTTP/1.0" | "HTTP/1.1"), None) => Err("405 Method Not Allowed"),
        _ => Err("400 Bad Request"),
    }
}

impl Pages {
    /// Returns the page of `path`, made now or shortly before.
    fn page(&self, path: &str) -> Option<Page> {
        let mut made = self.made.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((at, page)) = made.get(path)
            && at.elapsed() < FRESH
        {
            return Some(page.clone());
        }
        let page = (self.make)(path)?;
        made.insert(path.to_owned(), (Instant::now(), page.clone()));
        Some(page)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_that_of_a_get() {
        for (header, expected) in [
            ("GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", Ok("/metrics")),
            ("GET /metrics?x=y HTTP/1.0\r\n\r\n", Ok("/metrics")),
            ("HEAD /metrics HTTP/1.1\r\n\r\n", Err("405 Method Not Allowed")),
            ("GET /metrics\r\n\r\n", Err("400 Bad Request")),
            ("GET /a b HTTP/1.1\r\n\r\n", Err("400 Bad Request")),
            ("\r\n\r\n", Err("400 Bad Request")),
        ] {
            assert_eq!(path(header.as_bytes()), expected.map(str::to_owned), "{header}");
        }
        assert_eq!(path(b"GET /\xff HTTP/1.1\r\n\r\n"), Err("400 Bad Request"));
    }
}
