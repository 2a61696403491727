//! A collector of all log lines of this process.

use std::io::Write;
use std::sync::{Arc, Mutex, OnceLock};

/// Collects the log lines from now on, at the default level of programs.
pub fn collect() -> &'static Arc<Mutex<Vec<u8>>> {
    static LOG: OnceLock<Arc<Mutex<Vec<u8>>>> = OnceLock::new();
    LOG.get_or_init(|| {
        let lines: Arc<Mutex<Vec<u8>>> = Arc::default();
        let written = Arc::clone(&lines);
        let writer = move || Lines(Arc::clone(&written));
        tracing_subscriber::fmt().with_max_level(tracing::Level::INFO).with_ansi(false).with_writer(writer).init();
        lines
    })
}

struct Lines(Arc<Mutex<Vec<u8>>>);

impl Write for Lines {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("no test panicked").write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns the number of lines that contain all these parts.
pub fn lines_with(parts: &[&str]) -> usize {
    let text = String::from_utf8_lossy(&collect().lock().expect("no test panicked")).into_owned();
    text.lines().filter(|line| parts.iter().all(|part| line.contains(part))).count()
}
