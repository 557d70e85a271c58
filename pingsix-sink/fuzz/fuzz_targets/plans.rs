//! Plans between any two sets of documents: each step leaves a state that is closed under reference.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/sinks/fuzzing/input.rs"]
mod input;
#[path = "../../tests/sinks/fuzzing/plans.rs"]
mod plans;

fuzz_target!(|bytes: &[u8]| {
    let errors = plans::run(bytes);
    assert!(errors.is_empty(), "{errors:#?}");
});
