//! The socket for commands to a running allocator. Root and the allocator's own user may use it, and nobody else.

use std::io::{self, Read, Write};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use fairrate_daemon::Server;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{UnixListener, UnixStream};
use tokio::time::timeout;

use crate::reload::Live;

/// Largest number of bytes of a command.
const MAX_COMMAND: usize = 1024;

/// Largest number of bytes of an answer.
const MAX_ANSWER: u64 = 1 << 20;

/// The time in which a command must be sent, and its answer read.
const PATIENCE: Duration = Duration::from_secs(2);

/// The listening socket, which is removed in the end.
pub struct Control {
    listener: UnixListener,
    path: PathBuf,
}

impl Control {
    /// Listens at `path`. A socket of this user that is there is replaced, and nothing else.
    pub fn listen(path: &Path) -> io::Result<Self> {
        let own = nix::unistd::geteuid().as_raw();
        match std::fs::symlink_metadata(path) {
            Ok(there) if there.file_type().is_socket() && there.uid() == own => {
                if std::os::unix::net::UnixStream::connect(path).is_ok() {
                    return Err(io::Error::other("another allocator listens there: name another path"));
                }
                std::fs::remove_file(path)?;
            }
            Ok(_) => return Err(io::Error::other("something else is there: remove it, or name another path")),
            Err(_) => {}
        }
        let listener = UnixListener::bind(path)?;
        // Peers are checked too, as others may connect before this.
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o600))?;
        Ok(Self { listener, path: path.to_owned() })
    }

    /// Waits for a connection of somebody who may give commands.
    pub async fn accept(&self) -> UnixStream {
        loop {
            let Ok((stream, _)) = self.listener.accept().await else {
                // The usual cause is a lack of file descriptors; some will be free again.
                tokio::time::sleep(Duration::from_millis(50)).await;
                continue;
            };
            match stream.peer_cred() {
                Ok(peer) if peer.uid() == 0 || peer.uid() == nix::unistd::geteuid().as_raw() => return stream,
                Ok(peer) => tracing::warn!(user = peer.uid(), "a command of somebody else is refused"),
                Err(error) => tracing::warn!(%error, "a command of somebody unknown is refused"),
            }
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        // Whoever removed it before has done it.
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Reads a command, obeys it and answers.
pub async fn obey(mut stream: UnixStream, live: &mut Live, server: &Server) {
    let Ok(Ok(command)) = timeout(PATIENCE, read(&mut stream)).await else { return };
    let words: Vec<&str> = command.split_whitespace().collect();
    let result = match words[..] {
        ["reload"] => live.reload(server).await,
        ["link", name, state] => live.set_link(name, state, server).await,
        ["links"] => Ok(live.links()),
        _ => Err("commands are `reload`, `links` and `link NAME down|reset|RATE`".to_owned()),
    };
    let answer = match result {
        Ok(text) => format!("ok\n{}\n", text.trim_end()),
        Err(text) => format!("error\n{text}\n"),
    };
    let write = async {
        stream.write_all(answer.as_bytes()).await?;
        stream.shutdown().await
    };
    // Whoever asked may be gone.
    let _ = timeout(PATIENCE, write).await;
}

/// Reads up to the end of the line.
async fn read(stream: &mut UnixStream) -> io::Result<String> {
    let (mut command, mut buffer) = (Vec::new(), [0; 256]);
    while !command.contains(&b'\n') {
        let n = stream.read(&mut buffer).await?;
        command.extend_from_slice(&buffer[..n]);
        if n == 0 || MAX_COMMAND < command.len() {
            return Err(io::ErrorKind::InvalidData.into());
        }
    }
    String::from_utf8(command).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// The reason why a command was not obeyed.
pub enum Failed {
    /// The allocator could not be reached.
    Unreachable(String),
    /// The allocator refuses.
    Refused(String),
}

/// Sends a command to the allocator whose socket is at `path`, and returns its answer.
pub fn send(path: &Path, command: &str) -> Result<String, Failed> {
    let unreachable = |e: io::Error| {
        Failed::Unreachable(format!("{}: {e}: does the allocator run with this path as `control`?", path.display()))
    };
    let mut stream = std::os::unix::net::UnixStream::connect(path).map_err(unreachable)?;
    writeln!(stream, "{command}").map_err(unreachable)?;
    let mut answer = String::new();
    stream.take(MAX_ANSWER).read_to_string(&mut answer).map_err(unreachable)?;
    match answer.split_once('\n') {
        Some(("ok", text)) => Ok(text.to_owned()),
        Some(("error", text)) => Err(Failed::Refused(text.trim_end().to_owned())),
        _ => Err(Failed::Unreachable(format!("{}: it gives no answer: are you its user, or root?", path.display()))),
    }
}
