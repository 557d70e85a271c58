//! Holds the tests in `tests/`; see the README.
