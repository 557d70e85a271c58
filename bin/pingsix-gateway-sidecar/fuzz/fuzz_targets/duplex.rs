//! Scripts of sends and pauses on a port for TCP: every byte comes back.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/streams/fuzzing/input.rs"]
mod input;
#[path = "../../tests/streams/fuzzing/target.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::exercise(bytes, |target, bytes| target.duplex(bytes)));
