//! The share of one namespace in a budget.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::lower::Size;
use crate::lower::room::Room;
use crate::model::{DataPlaneKey, FieldPath, ObjectKey, Problem, Reason, Severity};

/// From how many percent of its share on a namespace is warned.
const WARNED_FROM: usize = 80;

/// The part of a budget that each namespace may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::lower) struct Share {
    percent: u8,
    pub(in crate::lower) size: Size,
}

impl Share {
    /// The share of this percentage; `None` without a bound.
    pub(in crate::lower) fn of(percent: u8, whole: Size) -> Option<Self> {
        let hundredths = usize::from(percent);
        let part = |amount: usize, _| amount / 100 * hundredths + amount % 100 * hundredths / 100;
        let size = whole.with(whole, part);
        (percent < 100).then_some(Self { percent, size })
    }

    /// The used percentage: of bytes or of matcher entries, the larger one.
    fn used(self, by: Size) -> usize {
        let percent = |used: usize, of: usize| used.saturating_mul(100).checked_div(of).unwrap_or_default();
        percent(by.bytes, self.size.bytes).max(percent(by.matcher_entries, self.size.matcher_entries))
    }

    /// Whether a namespace that uses so much is not warned yet.
    pub(super) fn is_far_from(self, used: Size) -> bool {
        self.used(used) < WARNED_FROM
    }

    /// The share of a namespace, for messages.
    pub(in crate::lower) fn named(self, namespace: &str) -> String {
        let Self { percent, size: Size { bytes, matcher_entries } } = self;
        format!(
            "the share that namespace {namespace} has of its budget, {percent} % or {bytes} bytes and \
             {matcher_entries} matcher entries"
        )
    }

    /// The warning to a namespace with this use, at an object; `None` far below the share.
    pub(in crate::lower) fn warning(
        self,
        used: Size,
        object: &Arc<ObjectKey>,
        plane: &DataPlaneKey,
    ) -> Option<Problem> {
        let namespace = &object.name.namespace;
        (!self.is_far_from(used)).then(|| Problem {
            object: object.clone(),
            field: FieldPath::new("spec"),
            severity: Severity::Warning,
            reason: Reason::ShareNearlyUsed,
            message: format!(
                "On data plane {plane}, {} % of {} are used; what does not fit is refused.",
                self.used(used).min(100),
                self.named(namespace)
            ),
        })
    }
}

/// The use of shares by namespaces.
#[derive(Debug, Default)]
pub(in crate::lower) struct Shares<'a> {
    share: Option<Share>,
    namespaces: BTreeMap<&'a str, NamespaceShare<'a>>,
}

#[derive(Debug)]
struct NamespaceShare<'a> {
    ledger: Room,
    /// The youngest object with an admitted part.
    youngest: &'a Arc<ObjectKey>,
}

impl<'a> Shares<'a> {
    pub(in crate::lower) fn new(share: Option<Share>) -> Self {
        Self { share, namespaces: BTreeMap::new() }
    }

    pub(super) const fn share(&self) -> Option<Share> {
        self.share
    }

    /// The rest of a namespace's share; `None` without a bound.
    pub(in crate::lower) fn left(&self, namespace: &str) -> Option<Room> {
        let share = self.share?;
        Some(self.namespaces.get(namespace).map_or_else(|| Room::new(share.size), |of| of.ledger))
    }

    /// Charges an object's namespace with an item that fits.
    pub(in crate::lower) fn take(&mut self, object: &'a Arc<ObjectKey>, taken: Size) {
        let Some(share) = self.share else { return };
        let of = self.namespaces.entry(&object.name.namespace);
        let of = of.or_insert_with(|| NamespaceShare { ledger: Room::new(share.size), youngest: object });
        of.youngest = object;
        let fits = of.ledger.take_size(taken);
        debug_assert!(fits.is_some(), "what is admitted fits the share");
    }

    fn used(&self) -> impl Iterator<Item = (&'a Arc<ObjectKey>, Share, Size)> {
        let used = |share: Share| {
            self.namespaces.values().map(move |of| (of.youngest, share, of.ledger.used_of(share.size)))
        };
        self.share.into_iter().flat_map(used)
    }

    /// The most that any namespace uses, bytes and matcher entries each for itself.
    pub(super) fn most_used(&self) -> Size {
        self.used().fold(Size::default(), |most, (_, _, used)| most.with(used, usize::max))
    }

    /// Warnings for namespaces that use most of their shares.
    pub(super) fn warnings(&self, plane: &DataPlaneKey) -> Vec<Problem> {
        self.used().filter_map(|(object, share, used)| share.warning(used, object, plane)).collect()
    }
}
