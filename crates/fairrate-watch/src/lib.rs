//! A page on the loopback that shows runs of fairrate: the network with utilisation, queues and pauses over time, ports
//! and flows as series, and two runs side by side.
//!
//! A [`Server`] reads results directories and serves the page. Its files are part of the program; the plotting library
//! among them comes from npm when the crate is built. See `docs/watch.md`.

mod assets;
mod files;
mod flows;
mod guard;
mod network;
mod run;
mod samples;
mod server;

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::watch;

pub use assets::LICENCES;
pub use run::Problem;

/// An error of the program.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A directory that cannot be shown.
    #[error(transparent)]
    Input(#[from] Problem),
    /// A port that cannot be had.
    #[error("port {port} of the loopback cannot be had: {source}")]
    Port {
        /// The port.
        port: u16,
        /// The cause.
        source: io::Error,
    },
    /// A failure of the system.
    #[error("the server failed: {0}")]
    System(String),
}

/// The wish of a user to stop the run that a page follows.
pub type Stop = Box<dyn Fn() + Send + Sync>;

/// The server of a page, bound to its port and not yet serving.
pub struct Server {
    listener: TcpListener,
    page: Arc<server::Page>,
    address: String,
}

impl Server {
    /// Reads the runs in `dirs`, one or two, and takes `port` of the loopback; 0 takes a free one. With `stop`, the
    /// page can stop the run.
    ///
    /// # Errors
    /// If a directory cannot be shown, or the port cannot be had.
    pub async fn new(dirs: &[PathBuf], port: u16, stop: Option<Stop>) -> Result<Self, Error> {
        let runs = dirs.iter().map(|dir| run::Run::open(dir)).collect::<Result<Vec<_>, _>>()?;
        let wanted = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let failed = |source| Error::Port { port, source };
        let listener = TcpListener::bind(wanted).await.map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let guard = guard::Guard::new(port).map_err(|e| Error::System(e.to_string()))?;
        let address = guard.address();
        Ok(Self { listener, page: Arc::new(server::Page::new(guard, runs, stop)), address })
    }

    /// Returns the address of the page, with its token.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Serves the page until `end` is true or its sender is gone.
    pub async fn serve(self, end: watch::Receiver<bool>) {
        server::serve(self.listener, self.page, end).await;
    }
}
