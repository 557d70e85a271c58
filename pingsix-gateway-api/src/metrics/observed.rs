//! The counters of parts of the controller, read at each scrape.

use std::fmt;

use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::Stats;
use pingsix_translate::Kind;

use super::page::Page;
use super::{Metrics, to_signed, to_whole};
use crate::replicas::Replicas;
use crate::status::StatusCounts;
use crate::watch::WatchStats;
use crate::world::{KindVisitor, Stored, World, with_kind};

impl Metrics {
    /// Registers the counters of watches.
    pub(crate) fn observe_watches(&self, stats: &WatchStats) {
        stats.register(&mut self.registry.lock());
    }

    /// Counts the objects of a world at each scrape.
    pub(crate) fn observe_world(&self, world: &World) {
        let kinds: Vec<_> =
            Kind::ALL.iter().map(|kind| (*kind, with_kind(&ObjectCounter, *kind, world))).collect();
        self.observe(move |page| {
            let counts: Vec<_> = kinds.iter().map(|(kind, count)| (kind.as_str(), count())).collect();
            let of = |read: fn(&(usize, usize)) -> usize| {
                counts.iter().map(move |(kind, count)| ([("kind", *kind)], to_whole(read(count))))
            };
            page.gauges("objects", "Known objects", of(|(objects, _)| *objects))?;
            let help = "Undecodable objects, which count as absent";
            page.gauges("undecodable_objects", help, of(|(_, undecodable)| *undecodable))
        });
    }

    /// Reads the counters of the status writer at each scrape.
    pub(crate) fn observe_status(&self, counts: impl Fn() -> StatusCounts + Send + Sync + 'static) {
        self.observe(move |page| {
            let StatusCounts { written, suppressed, conflicts, failures } = counts();
            let results = [
                ("written", written),
                ("suppressed", suppressed),
                ("conflict", conflicts),
                ("failed", failures),
            ];
            let labelled = results.map(|(result, count)| ([("result", result)], count));
            page.counters("status_updates", "Checks of statuses, by the result of the write", labelled)
        });
    }

    /// Counts the replicas, this one included, at each scrape.
    pub(crate) fn observe_replicas(&self, replicas: Replicas) {
        self.observe(move |page| {
            let others = replicas.others();
            page.gauge("replicas", "Serving replicas known to this replica", to_whole(1 + others.len()))?;
            let readers = others.iter().map(|replica| replica.readers).sum();
            page.gauge(
                "replicas_watches",
                "Open watches at the feeds of the other replicas",
                to_whole(readers),
            )
        });
    }

    /// Reads the counters of the embedded etcd server at each scrape.
    pub fn observe_feed(&self, etcd: EmbeddedEtcd) {
        self.observe(move |page| {
            let sizes: Vec<_> = etcd.scopes().into_iter().map(|(_, size)| size).collect();
            let documents: usize = sizes.iter().map(|size| size.documents).sum();
            let bytes: usize = sizes.iter().map(|size| size.bytes).sum();
            page.gauge("feed_open", "Whether the feed answers reads", etcd.is_open().into())?;
            page.gauge("feed_scopes", "Readable data planes, empty ones included", to_whole(sizes.len()))?;
            page.gauge("feed_documents", "Documents of all data planes", to_whole(documents))?;
            page.gauge("feed_bytes", "Bytes of the lists of all data planes", to_whole(bytes))?;
            feed(page, &etcd.stats())
        });
    }
}

/// The counters of the embedded etcd server.
fn feed(page: &mut Page<'_>, stats: &Stats) -> fmt::Result {
    page.gauge("feed_connections", "Open connections", to_signed(stats.connections))?;
    page.counter("feed_connections_refused", "Connections beyond the limit", stats.connections_refused)?;
    page.counter(
        "feed_connections_displaced",
        "Connections closed in favour of clients with fewer connections, watch streams or watches",
        stats.connections_displaced,
    )?;
    page.counter(
        "feed_watches_refused",
        "Watches and watch streams beyond the limit",
        stats.watches_refused,
    )?;
    page.gauge("feed_streams", "Open watch streams", to_signed(stats.streams))?;
    page.gauge("feed_watches", "Open watches; a PingSIX instance has one", to_signed(stats.watches))?;
    page.counter("feed_lists", "Answered range requests", stats.lists)?;
    page.counter("feed_list_bytes", "Bytes of range responses", stats.list_bytes)?;
    page.gauge(
        "feed_answer_bytes_unread",
        "Bytes of range and watch responses that clients have not read yet",
        to_signed(stats.answer_bytes_unread),
    )?;
    page.counter(
        "feed_refused",
        "Requests before the first publication, or for unknown prefixes",
        stats.refused,
    )?;
    page.counter(
        "feed_lists_encoded",
        "Encodings of range responses; equal lists share one",
        stats.lists_encoded,
    )?;
    page.counter("feed_denied", "Requests of clients without permission", stats.denied)?;
    page.counter("feed_watch_events", "Events in watch responses", stats.watch_events)?;
    page.counter(
        "feed_changes_merged",
        "Changes that a later change replaced before they were sent",
        stats.changes_merged,
    )?;
    page.counter("feed_batches", "Encodings of watch responses; equal changes share one", stats.batches)?;
    page.counter(
        "feed_watches_from_elsewhere",
        "Watches cancelled because the client has listed on another server",
        stats.watches_from_elsewhere,
    )?;
    page.counter("feed_watch_responses", "Watch responses with events", stats.watch_responses)?;
    page.counter("feed_watch_bytes", "Bytes of watch responses with events", stats.watch_bytes)?;
    page.counter(
        "feed_watches_compacted",
        "Watches cancelled because they fell behind the history",
        stats.watches_compacted,
    )?;
    page.counter(
        "feed_streams_stalled",
        "Watch streams and large responses that a client left unread",
        stats.streams_stalled,
    )?;
    page.counter(
        "feed_connections_evicted",
        "Connections closed with the oldest unread bytes, because clients left too many bytes unread in total",
        stats.connections_evicted,
    )?;
    page.counter(
        "feed_connections_lapsed",
        "Connections closed because the client's certificate has expired, its authority was removed, or its prefix has another owner",
        stats.connections_lapsed,
    )?;
    page.counter("feed_handshakes_failed", "Failed TLS handshakes", stats.handshakes_failed)?;
    page.counter("feed_tls_rotations", "Applied TLS rotations", stats.tls_rotations)?;
    page.counter("feed_tls_rotations_refused", "Refused TLS rotations", stats.tls_rotations_refused)?;
    page.counter("feed_publications", "Publications with changes", stats.publications)?;
    page.counter("feed_reservations", "Reserved blocks of revisions", stats.reservations)?;
    page.counter("feed_reservations_failed", "Failed reservations", stats.reservations_failed)?;
    page.counter(
        "feed_revisions_unreserved",
        "Blocks of revisions that the shared time supplied while reservations failed",
        stats.revisions_unreserved,
    )?;
    page.gauge("feed_store_away", "Whether the last reservation failed", stats.store_away.into())?;
    page.gauge("feed_revision", "The highest issued revision", stats.revision)?;
    page.gauge(
        "feed_compacted_revision",
        "The oldest revision from which every data plane can be watched",
        stats.compacted,
    )?;
    page.gauge(
        "feed_history_commits",
        "Changes in the history of the data plane with the most",
        to_signed(stats.history_commits),
    )?;
    page.gauge(
        "feed_history_bytes",
        "Bytes in memory of the histories of all data planes",
        to_signed(stats.history_bytes),
    )
}

/// The number of objects, and the number of undecodable ones.
type Count = Box<dyn Fn() -> (usize, usize) + Send + Sync>;

struct ObjectCounter;

impl KindVisitor for ObjectCounter {
    type Output = Count;

    fn run<K: Stored>(&self, world: &World) -> Count {
        let reader = world.reader::<K>();
        Box::new(move || {
            let objects = reader.objects();
            let undecodable = objects.iter().filter(|object| object.undecodable().is_some());
            (objects.len(), undecodable.count())
        })
    }
}
