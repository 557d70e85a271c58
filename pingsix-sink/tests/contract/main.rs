//! The contract of every sink, checked against each of them.
//!
//! [`pingsix_sink::contract`] has the assertions. Each sink has a module that creates its target.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod admin;
#[path = "../support/admin_double.rs"]
mod admin_double;
mod embedded;
mod etcd;
mod file;
mod memory;
mod planned;
#[path = "../support/relay.rs"]
mod relay;
mod resources;
mod sealed;
mod target;
#[path = "../support/wire.rs"]
mod wire;

pingsix_sink::contract_tests! {
    the_memory_sink: memory::Memory;
    the_embedded_server: embedded::Embedded;
    the_etcd_sink: etcd::Etcd;
    the_admin_sink: admin::Admin;
    the_etcd_sink_with_a_keyring: sealed::Sealed;
    the_file_sink: file::File;
    a_planned_sink: pingsix_sink::contract::PlannedTarget<planned::Readable>;
    a_planned_sink_of_a_target_without_reads: pingsix_sink::contract::PlannedTarget<planned::Unreadable>;
}
