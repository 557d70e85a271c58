//! Documents of any bytes: the sidecar does not panic, and serves good documents afterwards.

#![no_main]

use std::cell::RefCell;

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/streams/fuzzing/input.rs"]
mod input;
#[path = "../../tests/streams/fuzzing/target.rs"]
mod target;

thread_local! {
    static TARGET: RefCell<target::Target> = RefCell::new(target::Target::start());
}

fuzz_target!(|bytes: &[u8]| {
    let faults = TARGET.with_borrow_mut(|target| target.documents(bytes));
    assert!(faults.is_empty(), "{faults:#?}");
});
