//! The notifications of a service to systemd (`sd_notify(3)`): that it is ready, and that it is alive.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Duration;

/// The notification socket of the program that started this one, if it has one.
#[derive(Debug)]
pub struct Notifier {
    socket: UnixDatagram,
    to: SocketAddr,
    watchdog: Option<Duration>,
}

impl Notifier {
    /// Returns the notifier that the environment names (`NOTIFY_SOCKET`, `WATCHDOG_USEC`, `WATCHDOG_PID`); `None` if it
    /// names none.
    ///
    /// # Errors
    /// If it names an invalid socket.
    pub fn from_env() -> io::Result<Option<Self>> {
        let Some(name) = std::env::var_os("NOTIFY_SOCKET") else { return Ok(None) };
        let number = |name: &str| std::env::var(name).ok()?.parse::<u64>().ok();
        let is_for_this = number("WATCHDOG_PID").is_none_or(|pid| pid == u64::from(std::process::id()));
        let watchdog = number("WATCHDOG_USEC").filter(|&us| 0 < us && is_for_this).map(Duration::from_micros);
        Ok(Some(Self::to(name.as_bytes(), watchdog)?))
    }

    /// Returns a notifier for a socket: a path, or `@` and an abstract name. `watchdog` is the longest allowed silence
    /// of the service.
    ///
    /// # Errors
    /// If there can be no such socket.
    pub fn to(name: &[u8], watchdog: Option<Duration>) -> io::Result<Self> {
        let to = match name.split_first() {
            Some((b'@', name)) => SocketAddr::from_abstract_name(name)?,
            _ => SocketAddr::from_pathname(std::ffi::OsStr::from_bytes(name))?,
        };
        let socket = UnixDatagram::unbound()?;
        // A receiver that does not read must not block the service.
        socket.set_nonblocking(true)?;
        Ok(Self { socket, to, watchdog })
    }

    /// Sends the notification that the service is ready; `status` is shown by `systemctl status`.
    pub fn ready(&self, status: &str) {
        self.say(&format!("READY=1\nSTATUS={}", status.replace('\n', " ")));
    }

    /// Sends the notification that the service ends.
    pub fn stopping(&self) {
        self.say("STOPPING=1");
    }

    /// Sends the notification that the service is alive.
    pub fn alive(&self) {
        self.say("WATCHDOG=1");
    }

    /// Returns the time between two calls of [`Notifier::alive`], if there is a watchdog: a third of its timeout.
    pub fn interval(&self) -> Option<Duration> {
        self.watchdog.map(|patience| patience / 3)
    }

    /// Calls [`Notifier::alive`] as long as `is_alive` returns `true`, until the task is dropped. Returns at once
    /// without a watchdog.
    pub async fn keep_alive(&self, is_alive: impl Fn() -> bool) {
        let Some(interval) = self.interval() else { return };
        let mut ticks = tokio::time::interval(interval);
        loop {
            ticks.tick().await;
            if is_alive() {
                self.alive();
            }
        }
    }

    /// Sends a notification. A notification that is not received is lost; the next one follows soon.
    fn say(&self, words: &str) {
        let _ = self.socket.send_to_addr(words.as_bytes(), &self.to);
    }
}
