//! Documents of any bytes: the sidecar does not panic, and serves good documents afterwards.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/streams/fuzzing/input.rs"]
mod input;
#[path = "../../tests/streams/fuzzing/target.rs"]
mod target;

fuzz_target!(|bytes: &[u8]| target::exercise(bytes, target::Target::documents));
