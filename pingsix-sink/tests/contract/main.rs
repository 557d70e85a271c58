//! The contract of every sink, checked against each of them.
//!
//! [`suite`] has the assertions over a [`target::Target`]: a place that a sink writes to, which tests can also read,
//! change as another writer, and make fail. Each sink has a module that creates its target.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot go on fails")]

mod admin;
#[path = "../support/admin_double.rs"]
mod admin_double;
#[path = "../support/documents.rs"]
mod documents;
mod embedded;
mod etcd;
mod file;
#[path = "../support/graph.rs"]
mod graph;
mod memory;
#[path = "../support/relay.rs"]
mod relay;
mod resources;
mod sealed;
mod suite;
mod target;
#[path = "../support/wire.rs"]
mod wire;

use target::Target;

/// One test for each promise and sink.
macro_rules! contract {
    ($($sink:ident: $target:ty;)+) => {$(
        mod $sink {
            contract! { @promises $target:
                holds_exactly_what_was_published
                touches_no_other_scope
                refuses_a_scope_inside_another
                writes_nothing_for_equal_content
                is_closed_under_reference_at_every_step
                completes_a_failed_publication_when_repeated
                completes_a_publication_with_a_lost_response
                withdraws_nothing_when_it_is_restarted_after_any_step
                keeps_foreign_documents
                reverts_foreign_changes_of_its_documents
                takes_over_a_desired_key
                fails_in_time_on_a_silent_target
                never_shows_a_value
            }
        }
    )+};
    (@promises $target:ty: $($promise:ident)+) => {$(
        #[tokio::test]
        async fn $promise() {
            if let Some(target) = <$target as crate::Target>::start().await {
                crate::suite::$promise(target).await;
            }
        }
    )+};
}

contract! {
    the_memory_sink: crate::memory::Memory;
    the_embedded_server: crate::embedded::Embedded;
    the_etcd_sink: crate::etcd::Etcd;
    the_admin_sink: crate::admin::Admin;
    the_etcd_sink_with_a_keyring: crate::sealed::Sealed;
    the_file_sink: crate::file::File;
}
