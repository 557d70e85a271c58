//! What was logged by all tests of a program.

#![allow(dead_code, reason = "each test program uses a part of this file")]

use std::io;
use std::sync::{Mutex, Once};

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

/// Begins to keep what is logged.
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

/// All of it, also that of other tests.
pub(crate) fn all() -> String {
    String::from_utf8_lossy(&WRITTEN.lock().unwrap()).into_owned()
}

/// The warnings that contain a text, such as the name of a file that only one test has.
pub(crate) fn warnings(text: &str) -> Vec<String> {
    all().lines().filter(|line| line.contains(" WARN ") && line.contains(text)).map(str::to_owned).collect()
}
