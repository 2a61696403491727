//! The notifications that systemd gets.

use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use crate::common::program::{ANY_PORT, Killed, file, full_disk, get, program};
use crate::common::{INSECURE, until};
use fairrate_daemon::systemd::Notifier;

fn socket(name: &str) -> (PathBuf, UnixDatagram) {
    let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = std::fs::remove_file(&path);
    let socket = UnixDatagram::bind(&path).expect("the target directory can be written");
    socket.set_read_timeout(Some(Duration::from_mins(1))).expect("it can be set");
    (path, socket)
}

fn word(socket: &UnixDatagram) -> String {
    let mut bytes = [0; 1024];
    let n = socket.recv(&mut bytes).expect("something is said");
    String::from_utf8_lossy(&bytes[..n]).into_owned()
}

/// This also holds on a full disk: all other output goes to its log.
#[test]
fn the_allocator_is_ready_and_alive_and_says_when_it_ends() {
    let (path, socket) = socket("notify-allocator");
    let config = file("notify.toml", &INSECURE.replace("listen = \"127.0.0.1:0\"", ANY_PORT));
    let mut command = program();
    command.arg("run").arg(config).stderr(full_disk());
    command.env("NOTIFY_SOCKET", &path).env("WATCHDOG_USEC", "100000");
    let mut child = Killed(command.spawn().expect("it starts"));
    let ready = word(&socket);
    let status = ready.strip_prefix("READY=1\nSTATUS=agents at ").expect("it is ready");
    let (_, metrics) = status.split_once(", metrics at ").expect("it says where");
    (0..3).for_each(|_| assert_eq!(word(&socket), "WATCHDOG=1"));
    assert!(get(metrics.parse().expect("an address"), "/healthz").ends_with("\r\n\r\nok\n"));
    let id = child.0.id().to_string();
    assert!(std::process::Command::new("kill").arg(id).status().expect("there is `kill`").success());
    until("it says that it ends", || word(&socket) == "STOPPING=1");
    assert!(child.0.wait().expect("it ends").success());
}

#[test]
fn nothing_is_said_while_the_service_is_not_alive() {
    let (path, socket) = socket("notify-dead");
    socket.set_nonblocking(true).expect("it can be set");
    let notifier = Notifier::to(path.as_os_str().as_encoded_bytes(), Some(Duration::from_millis(3)));
    let (notifier, is_alive) = (notifier.expect("it can be"), Arc::new(AtomicBool::new(false)));
    let (alive, asked) = (Arc::clone(&is_alive), Arc::new(std::sync::atomic::AtomicU32::new(0)));
    let count = Arc::clone(&asked);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    std::thread::spawn(move || {
        runtime.block_on(notifier.keep_alive(|| {
            count.fetch_add(1, Ordering::Relaxed);
            alive.load(Ordering::Relaxed)
        }));
    });
    until("it was asked often", || 20 < asked.load(Ordering::Relaxed));
    assert!(socket.recv(&mut [0; 10]).is_err(), "nothing was said");
    is_alive.store(true, Ordering::Relaxed);
    until("it says so", || socket.recv(&mut [0; 10]).is_ok());
}

#[test]
fn abstract_sockets_hear_too() {
    let name = format!("fairrate-test-{}", std::process::id());
    let address = SocketAddr::from_abstract_name(&name).expect("a name");
    let socket = UnixDatagram::bind_addr(&address).expect("it is free");
    let notifier = Notifier::to(format!("@{name}").as_bytes(), None).expect("it can be");
    notifier.ready("two\nlines");
    assert_eq!(word(&socket), "READY=1\nSTATUS=two lines");
    assert_eq!(notifier.interval(), None);
}
