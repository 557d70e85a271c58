//! Attached policies: who wins a target, and what that means for connections to a backend.
//!
//! The way of the data: [`backend_tls`] reads each policy and says whether PingSIX can do what it asks for;
//! [`precedence`] finds the one that counts for each Service port; [`demand`] tells what it demands of the requests
//! of one route. A backend that a policy targets is spoken to as the policy wants or not at all, so an unusable
//! policy still wins its target.

mod backend_tls;
mod demand;
mod precedence;

pub(crate) use backend_tls::{BackendTls, PolicyTarget};
pub(crate) use demand::{Demand, InEffect, Payload};
pub(crate) use precedence::BackendTlsPolicies;

#[cfg(test)]
mod tests;
