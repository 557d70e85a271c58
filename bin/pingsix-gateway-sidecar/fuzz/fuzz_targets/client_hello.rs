//! Bytes of any client on a port for TLS: the connection gets its own bytes back, or none.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/streams/fuzzing/input.rs"]
mod input;
#[path = "../../tests/streams/fuzzing/target.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::exercise(bytes, |target, bytes| target.hello(bytes)));
