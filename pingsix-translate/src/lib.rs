//! Gateway API objects in, PingSIX configuration and verdicts out.

pub mod responder;
