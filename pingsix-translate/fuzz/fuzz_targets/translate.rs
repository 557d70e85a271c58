//! Translation of nonsensical objects: it never panics, and emits nothing that PingSIX would refuse.

#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../../tests/properties/garbage.rs"]
mod garbage;

fuzz_target!(|bytes: &[u8]| {
    let violations = garbage::exercise(bytes);
    assert!(violations.is_empty(), "{violations:#?}");
});
