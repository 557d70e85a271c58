//! The log of all tests of a program.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::io;
use std::sync::{Arc, Mutex, Once};

use tracing::subscriber::DefaultGuard;

static WRITTEN: Mutex<Vec<u8>> = Mutex::new(Vec::new());

struct Writer;

impl io::Write for Writer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        WRITTEN.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts to record the log.
pub(crate) fn keep() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(|| Writer)
            .init();
    });
}

/// The log of one thread: all lines of a test on a runtime of one thread, and no line of other tests.
pub(crate) struct ThreadLog {
    written: Arc<Mutex<Vec<u8>>>,
    _guard: DefaultGuard,
}

struct ThreadWriter(Arc<Mutex<Vec<u8>>>);

impl io::Write for ThreadWriter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl ThreadLog {
    /// Starts to record the log of this thread.
    pub(crate) fn keep() -> Self {
        let written = Arc::<Mutex<Vec<u8>>>::default();
        let writer = Arc::clone(&written);
        let subscriber = tracing_subscriber::fmt()
            .with_max_level(tracing::Level::DEBUG)
            .with_ansi(false)
            .with_writer(move || ThreadWriter(Arc::clone(&writer)))
            .finish();
        Self { written, _guard: tracing::subscriber::set_default(subscriber) }
    }

    /// The warnings that contain a text.
    pub(crate) fn warnings(&self, text: &str) -> Vec<String> {
        warnings_in(&String::from_utf8_lossy(&self.written.lock().unwrap()), text)
    }
}

/// The whole log, including other tests.
pub(crate) fn all() -> String {
    String::from_utf8_lossy(&WRITTEN.lock().unwrap()).into_owned()
}

/// The warnings that contain a text, such as the name of a file that only one test has.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    warnings_in(&all(), text)
}

fn warnings_in(log: &str, text: &str) -> Vec<String> {
    log.lines().filter(|line| line.contains(" WARN ") && line.contains(text)).map(str::to_owned).collect()
}
