//! The counters of parts of the controller, read at each scrape.

use std::fmt;

use pingsix_sink::EmbeddedEtcd;
use pingsix_sink::embedded::Stats;
use pingsix_translate::Kind;

use super::page::Page;
use super::{Metrics, number, signed, whole};
use crate::replicas::Replicas;
use crate::status::StatusCounts;
use crate::world::{PerKind, Stored, World, with_kind};

/// The counters of the watches of a kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WatchTotals {
    /// Which kind.
    pub kind: Kind,
    /// Lists begun: one, and one for every restart that could not go on where it was.
    pub lists: u64,
    /// Watches opened.
    pub watches: u64,
    /// Failures by category.
    pub faults: Vec<(&'static str, u64)>,
}

/// The objects that are watched because something refers to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReferencedTotals {
    /// Objects that are watched by their name.
    pub by_name: u64,
    /// Namespaces that are watched as a whole; a watch of all namespaces counts as one.
    pub wide: u64,
    /// Objects that these watches know the version of.
    pub versions: u64,
}

impl Metrics {
    /// Counts what is watched because something refers to it whenever somebody asks.
    pub fn observe_referenced(&self, totals: impl Fn() -> ReferencedTotals + Send + Sync + 'static) {
        self.observe(move |page| {
            let ReferencedTotals { by_name, wide, versions } = totals();
            page.gauge(
                "watches_by_name",
                "Secrets and ConfigMaps that are watched by their name",
                signed(by_name),
            )?;
            let help = "Namespaces that are watched as a whole, as much of them is referred to";
            page.gauge("watches_wide", help, signed(wide))?;
            let help = "Objects that these watches know the version of, most of which nothing refers to";
            page.gauge("watches_wide_versions", help, signed(versions))
        });
    }

    /// Counts what watches have been through whenever somebody asks; the function gives an entry per kind.
    pub fn observe_watches(&self, totals: impl Fn() -> Vec<WatchTotals> + Send + Sync + 'static) {
        self.observe(move |page| {
            let totals = totals();
            let of = |read: fn(&WatchTotals) -> u64| {
                totals.iter().map(move |of| ([("kind", of.kind.as_str())], read(of)))
            };
            page.counters("watch_lists", "Lists begun, one and one per restart", of(|of| of.lists))?;
            page.counters("watches", "Watches opened", of(|of| of.watches))?;
            let faults = totals.iter().flat_map(|of| {
                let labelled = |(category, count): &(&'static str, u64)| {
                    ([("kind", of.kind.as_str()), ("category", *category)], *count)
                };
                of.faults.iter().map(labelled).collect::<Vec<_>>()
            });
            page.counters("watch_errors", "Failures of lists and watches", faults)
        });
    }

    /// Counts the objects of a world whenever somebody asks.
    pub fn observe_world(&self, world: &World) {
        let kinds: Vec<_> =
            Kind::ALL.iter().map(|kind| (*kind, with_kind(&Counting, *kind, world))).collect();
        self.observe(move |page| {
            let counts: Vec<_> = kinds.iter().map(|(kind, count)| (kind.as_str(), count())).collect();
            let of = |read: fn(&(usize, usize)) -> usize| {
                counts.iter().map(move |(kind, count)| ([("kind", *kind)], whole(read(count))))
            };
            page.gauges("objects", "Objects that are known", of(|(objects, _)| *objects))?;
            let help = "Objects that cannot be decoded, which have no effect";
            page.gauges("undecodable_objects", help, of(|(_, undecodable)| *undecodable))
        });
    }

    /// Counts what the writer of statuses has done whenever somebody asks.
    pub fn observe_status(&self, counts: impl Fn() -> StatusCounts + Send + Sync + 'static) {
        self.observe(move |page| {
            let StatusCounts { written, suppressed, conflicts, failures } = counts();
            let results = [
                ("written", written),
                ("suppressed", suppressed),
                ("conflict", conflicts),
                ("failed", failures),
            ];
            let labelled = results.map(|(result, count)| ([("result", result)], count));
            page.counters("status_updates", "Statuses that were to be written, and what came of it", labelled)
        });
    }

    /// Counts the replicas that are there, this one among them, whenever somebody asks.
    pub fn observe_replicas(&self, replicas: Replicas) {
        self.observe(move |page| {
            let others = replicas.others();
            page.gauge("replicas", "Replicas that serve, as far as this one knows", whole(1 + others.len()))?;
            let readers = others.iter().map(|replica| replica.readers).sum();
            page.gauge("replicas_watches", "Watches that are open at the feeds of the others", whole(readers))
        });
    }

    /// Counts what the embedded etcd server serves whenever somebody asks. The budget is that of one data plane, in
    /// bytes.
    pub fn observe_feed(&self, etcd: EmbeddedEtcd, budget: usize) {
        self.observe(move |page| {
            let sizes: Vec<_> = etcd.scopes().into_iter().map(|(_, size)| size).collect();
            let documents: usize = sizes.iter().map(|size| size.documents).sum();
            let bytes: usize = sizes.iter().map(|size| size.bytes).sum();
            let largest = sizes.iter().map(|size| size.bytes).max().unwrap_or_default();
            page.gauge("feed_open", "Whether reads are answered", etcd.is_open().into())?;
            page.gauge(
                "feed_scopes",
                "Data planes that can be read, also those left empty",
                whole(sizes.len()),
            )?;
            page.gauge("feed_documents", "Documents of all data planes", whole(documents))?;
            page.gauge("feed_bytes", "Bytes that lists of all data planes have", whole(bytes))?;
            page.fraction(
                "feed_largest_ratio",
                "The largest data plane's share of its budget",
                number(largest) / number(budget.max(1)),
            )?;
            feed(page, &etcd.stats())
        });
    }
}

/// The counters of the embedded etcd server.
fn feed(page: &mut Page<'_>, stats: &Stats) -> fmt::Result {
    page.gauge("feed_connections", "Connections that are open", signed(stats.connections))?;
    page.counter("feed_connections_refused", "Connections beyond the limit", stats.connections_refused)?;
    page.counter(
        "feed_connections_displaced",
        "Connections closed in favour of clients that have fewer connections, watch streams or watches",
        stats.connections_displaced,
    )?;
    page.counter(
        "feed_watches_refused",
        "Watches and watch streams beyond the limit",
        stats.watches_refused,
    )?;
    page.gauge("feed_streams", "Watch streams that are open", signed(stats.streams))?;
    page.gauge("feed_watches", "Watches that are open; a PingSIX instance has one", signed(stats.watches))?;
    page.counter("feed_lists", "Range requests answered", stats.lists)?;
    page.counter("feed_list_bytes", "Bytes in the answers to range requests", stats.list_bytes)?;
    page.gauge(
        "feed_answer_bytes_unread",
        "Bytes of answers and of watch responses that clients have not read yet",
        signed(stats.answer_bytes_unread),
    )?;
    page.counter(
        "feed_refused",
        "Requests before the first publication, or for unknown prefixes",
        stats.refused,
    )?;
    page.counter("feed_lists_encoded", "Answers to those that had to be encoded", stats.lists_encoded)?;
    page.counter("feed_denied", "Requests of clients that may not read what they ask for", stats.denied)?;
    page.counter("feed_watch_events", "Events in watch responses", stats.watch_events)?;
    page.counter(
        "feed_changes_merged",
        "Changes that were never told, for later ones came before their turn",
        stats.changes_merged,
    )?;
    page.counter("feed_batches", "Watch responses that had to be encoded", stats.batches)?;
    page.counter(
        "feed_watches_from_elsewhere",
        "Watches that would have gone on from a list of another server",
        stats.watches_from_elsewhere,
    )?;
    page.counter("feed_watch_responses", "Watch responses with events", stats.watch_responses)?;
    page.counter("feed_watch_bytes", "Bytes of those", stats.watch_bytes)?;
    page.counter("feed_watches_compacted", "Watches that fell behind what is kept", stats.watches_compacted)?;
    page.counter(
        "feed_streams_stalled",
        "Watch streams and large answers that a client left unread",
        stats.streams_stalled,
    )?;
    page.counter(
        "feed_connections_evicted",
        "Connections closed because all clients together left too many bytes unread, and theirs for the longest time",
        stats.connections_evicted,
    )?;
    page.counter(
        "feed_connections_lapsed",
        "Connections closed because a client's certificate had expired, its authority is none any more, or a prefix has another owner than it names",
        stats.connections_lapsed,
    )?;
    page.counter("feed_handshakes_failed", "TLS handshakes that failed", stats.handshakes_failed)?;
    page.counter("feed_tls_rotations", "New TLS material that was taken over", stats.tls_rotations)?;
    page.counter(
        "feed_tls_rotations_refused",
        "New TLS material that cannot be used",
        stats.tls_rotations_refused,
    )?;
    page.counter("feed_publications", "Publications that changed something", stats.publications)?;
    page.counter("feed_reservations", "Blocks of revisions that were reserved", stats.reservations)?;
    page.counter("feed_reservations_failed", "Reservations that failed", stats.reservations_failed)?;
    page.counter(
        "feed_revisions_unreserved",
        "Blocks of revisions taken by the time that replicas share, for none could be reserved",
        stats.revisions_unreserved,
    )?;
    page.gauge(
        "feed_store_away",
        "Whether the last reservation of a revision that replicas share failed",
        stats.store_away.into(),
    )?;
    page.gauge("feed_revision", "The highest revision handed out", stats.revision)?;
    page.gauge(
        "feed_compacted_revision",
        "The oldest revision at which every data plane can be read",
        stats.compacted,
    )?;
    page.gauge(
        "feed_history_commits",
        "Changes kept of the data plane of which most are",
        signed(stats.history_commits),
    )?;
    page.gauge(
        "feed_history_bytes",
        "Bytes in memory of the changes kept of all data planes",
        signed(stats.history_bytes),
    )
}

/// The number of objects, and the number of undecodable ones.
type Count = Box<dyn Fn() -> (usize, usize) + Send + Sync>;

struct Counting;

impl PerKind for Counting {
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
