//! Range, Txn and Watch requests of any bytes: the server answers or refuses, and goes on.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/sinks/fuzzing/frames.rs"]
mod frames;
#[path = "../../tests/sinks/fuzzing/input.rs"]
mod input;

thread_local! {
    static TARGET: RefCell<frames::Target> = RefCell::new(frames::Target::start());
}

fuzz_target!(|bytes: &[u8]| {
    let errors = TARGET.with_borrow_mut(|target| target.run(bytes));
    assert!(errors.is_empty(), "{errors:#?}");
});
