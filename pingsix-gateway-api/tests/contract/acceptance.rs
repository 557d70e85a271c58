//! The acceptance rules and PingSIX, on mutated documents among healthy ones.

mod corpus;
mod mutation;
mod pools;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::sync::Mutex;
use std::time::Duration;

use bytes::Bytes;
use pingsix_translate::pingsix::validate::{
    DnsNames, Rule, ValidateOptions, Violation, is_refused, validate_pairs,
};
use serde_json::Value;

use crate::etcd::Etcd;
use crate::process::{PingSix, Verdict};
use crate::rng::SeededRng;
use crate::run::{binary, cases, print_message, seed};
use corpus::Corpus;
use mutation::{Case, Delivery};

/// The number of concurrent PingSIX processes. A process mostly waits: after a refusal PingSIX rests for a second or
/// more.
const CHECKERS: usize = 16;

/// PingSIX reports its verdict within milliseconds, except for a name lookup, which takes at most a second.
const WAIT_TIMEOUT: Duration = Duration::from_secs(6);

/// The documents of a prefix.
type Documents = BTreeMap<String, Bytes>;

/// A rich configuration of each plugin, some plugins more than once.
pub(crate) fn rich_plugins() -> Vec<(&'static str, Value)> {
    corpus::rich_plugins()
}

/// A configuration after a change or two; `None` if the result is no JSON.
pub(crate) fn changed(rng: &mut SeededRng, config: &Value) -> Option<Value> {
    let mut config = config.clone();
    mutation::mutate(rng, &mut config);
    if rng.percent(40) && config.is_object() {
        mutation::mutate(rng, &mut config);
    }
    serde_json::from_str(&mutation::text(&config)).ok()
}

/// A PingSIX with a prefix of its own.
struct Checker<'j> {
    binary: &'j Path,
    etcd: &'j Etcd,
    scope: String,
    healthy: Documents,
    pingsix: PingSix,
    edition: usize,
}

impl<'j> Checker<'j> {
    async fn start(binary: &'j Path, etcd: &'j Etcd, scope: String, healthy: Documents) -> Self {
        let pingsix = PingSix::start(binary, etcd.address, &scope).await;
        let mut checker = Self { binary, etcd, scope, healthy, pingsix, edition: 0 };
        checker.recover().await;
        checker
    }

    /// Publishes documents, beside one that is sound and another every time.
    async fn publish(&mut self, documents: &Documents) -> i64 {
        self.edition += 1;
        let mut pairs: Vec<(String, Bytes)> =
            documents.iter().map(|(key, value)| (key.clone(), value.clone())).collect();
        let edition = format!(r#"{{"edition":{}}}"#, self.edition);
        pairs.push(("global_rules/edition".to_owned(), edition.into()));
        self.etcd.publish_raw(&self.scope, &pairs).await
    }

    async fn recover(&mut self) {
        let healthy = self.healthy.clone();
        let revision = self.publish(&healthy).await;
        self.pingsix.published(revision).await;
    }

    /// The verdicts of PingSIX on documents that are new to it.
    async fn verdict(&mut self, documents: &Documents, delivery: Delivery) -> Verdict {
        let revision = self.publish(documents).await;
        if delivery == Delivery::List {
            self.pingsix = PingSix::launch(self.binary, self.etcd.address, &self.scope).await;
        }
        let verdict = self.pingsix.verdict(revision, WAIT_TIMEOUT).await;
        if verdict == Verdict::Silent {
            // The worker has died. Another start would fail with the same documents.
            let healthy = self.healthy.clone();
            self.publish(&healthy).await;
            self.pingsix = PingSix::start(self.binary, self.etcd.address, &self.scope).await;
        }
        self.recover().await;
        verdict
    }
}

/// The verdicts on one case.
struct CheckedCase {
    case: Case,
    violations: Vec<Violation>,
    verdict: Verdict,
}

impl CheckedCase {
    fn agree(&self) -> bool {
        is_refused(&self.violations) == (self.verdict != Verdict::Accepted)
    }

    fn describe(&self) -> String {
        let worst: Vec<String> = self
            .violations
            .iter()
            .filter(|violation| violation.is_refusal())
            .map(ToString::to_string)
            .collect();
        format!("{}\n  PingSIX: {:?}\n  rules: {worst:?}", self.case, self.verdict)
    }
}

fn options(scope: &str) -> ValidateOptions {
    ValidateOptions { prefix: scope.to_owned(), dns_names: DnsNames::Refuse, ..ValidateOptions::default() }
}

fn violations(scope: &str, documents: &Documents) -> Vec<Violation> {
    let pairs = documents.iter().map(|(key, value)| (format!("{scope}/{key}"), value.clone()));
    validate_pairs(pairs, &options(scope))
}

/// Whether the rules report an error that depends on the order of insertion.
fn depends_on_order(violations: &[Violation]) -> bool {
    violations.iter().all(|violation| {
        !violation.is_refusal() || matches!(violation.rule, Rule::Pattern | Rule::PatternConflict)
    })
}

/// Judges cases until there are none left.
async fn check_all(mut checker: Checker<'_>, cases: &Mutex<Vec<Case>>, results: &Mutex<Vec<CheckedCase>>) {
    loop {
        let Some(case) = cases.lock().unwrap().pop() else { return };
        let mut documents = checker.healthy.clone();
        case.apply(&mut documents);
        let violations = violations(&checker.scope, &documents);
        let mut verdict = checker.verdict(&documents, case.delivery).await;
        let mut attempts = 1;
        while verdict == Verdict::Accepted
            && is_refused(&violations)
            && depends_on_order(&violations)
            && attempts < 20
        {
            verdict = checker.verdict(&documents, case.delivery).await;
            attempts += 1;
        }
        results.lock().unwrap().push(CheckedCase { case, violations, verdict });
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_and_the_acceptance_rules_agree_on_mutated_documents() {
    const TEST: &str = "acceptance";
    let Some(binary) = binary(TEST) else { return };
    let corpus = Corpus::new();
    let wanted = (cases() / 8).max(1);
    let mut rng = SeededRng::new(seed(), 0);
    let mut drawn = corpus.sound_cases();
    let mut seen: BTreeSet<String> = drawn.iter().map(ToString::to_string).collect();
    drawn.extend(corpus.fixed_cases().into_iter().filter(|case| seen.insert(case.to_string())));
    let sound = corpus.sound_cases().len();
    while drawn.len() < wanted + sound {
        let mut case = corpus.mutate(&mut rng);
        if rng.percent(5) {
            case.delivery = Delivery::List;
        }
        if seen.insert(case.to_string()) {
            drawn.push(case);
        }
    }
    let scopes: Vec<String> = (0..CHECKERS).map(|index| format!("/contract/acceptance-{index}")).collect();
    let etcd = Etcd::start(&scopes).await;
    let healthy = corpus.healthy().clone();
    assert_eq!(violations(&scopes[0], &healthy), Vec::new(), "the healthy documents are");
    let (open, checked) = (Mutex::new(drawn), Mutex::new(Vec::new()));
    let judging = scopes.into_iter().map(|scope| async {
        check_all(Checker::start(&binary, &etcd, scope, healthy.clone()).await, &open, &checked).await;
    });
    join_all(judging).await;

    let checked = checked.into_inner().unwrap();
    let disagreements: Vec<String> =
        checked.iter().filter(|checked| !checked.agree()).map(CheckedCase::describe).collect();
    let refused = |checked: &&CheckedCase| checked.verdict != Verdict::Accepted;
    let silent = checked.iter().filter(|checked| checked.verdict == Verdict::Silent).count();
    let listed = checked.iter().filter(|checked| checked.case.delivery == Delivery::List).count();
    let rules: BTreeSet<Rule> = checked
        .iter()
        .flat_map(|checked| &checked.violations)
        .filter(|violation| violation.is_refusal())
        .map(|violation| violation.rule)
        .collect();
    print_message(&format!(
        "{TEST}: {} mutated documents compared, {listed} of them by a start on them, seed {}: {} refused by PingSIX, \
         of which {silent} killed its worker, {} accepted; {} rules took part; {} disagreements",
        checked.len(),
        seed(),
        checked.iter().filter(refused).count(),
        checked.iter().filter(|checked| !refused(checked)).count(),
        rules.len(),
        disagreements.len(),
    ));
    assert!(disagreements.is_empty(), "{}", disagreements.join("\n"));
}

/// Waits for all of several futures, all polled by this task.
async fn join_all(futures: impl Iterator<Item = impl Future<Output = ()>>) {
    let mut futures: Vec<_> = futures.map(Box::pin).collect();
    std::future::poll_fn(|context| {
        futures.retain_mut(|future| future.as_mut().poll(context).is_pending());
        if futures.is_empty() { std::task::Poll::Ready(()) } else { std::task::Poll::Pending }
    })
    .await;
}
