//! Odd certificates and keys: PingSIX accepts all that our rules accept.
//!
//! The test names those that PingSIX accepts and we refuse, and the keys among them that serve clients. Without the
//! program `openssl`, the tests leave its material out, and say so.

mod der;
mod material;
mod openssl;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use bytes::Bytes;
use pingsix_translate::pingsix::validate::{ValidateOptions, is_refused, validate_pairs};
use serde_json::json;

use crate::etcd::Etcd;
use crate::process::{Listener, PingSix, Verdict};
use crate::run::{binary, print_message};
use material::Odd;
use openssl::Program;

/// PingSIX parses some hundred certificates in this time many times over.
const WAIT_TIMEOUT: Duration = Duration::from_secs(20);

/// The number of documents of unknown acceptance in one publication.
const DOCUMENTS_PER_PUBLICATION: usize = 64;

const SCOPE: &str = "/contract/keys";

/// A PingSIX that is given certificates.
struct Harness {
    etcd: Etcd,
    pingsix: PingSix,
    edition: usize,
}

impl Harness {
    async fn start(binary: &std::path::Path) -> Self {
        let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
        let pingsix = PingSix::start_with(Listener::Tls, binary, etcd.address, SCOPE).await;
        Self { etcd, pingsix, edition: 0 }
    }

    /// The verdict of PingSIX on these documents alone.
    async fn takes(&mut self, pairs: &[&Odd]) -> bool {
        let documents = pairs.iter().enumerate().map(|(index, odd)| document(index, odd)).collect();
        let revision = self.publish(documents).await;
        match self.pingsix.verdict(revision, WAIT_TIMEOUT).await {
            Verdict::Accepted => true,
            Verdict::Refused(..) => {
                // An error stays until PingSIX accepts documents.
                let revision = self.publish(Vec::new()).await;
                self.pingsix.published(revision).await;
                false
            }
            Verdict::Silent => panic!("PingSIX is gone: {}", self.pingsix.log()),
        }
    }

    async fn publish(&mut self, mut documents: Vec<(String, Bytes)>) -> i64 {
        self.edition += 1;
        let edition = format!(r#"{{"edition":{}}}"#, self.edition);
        documents.push(("global_rules/edition".to_owned(), edition.into()));
        self.etcd.publish_raw(SCOPE, &documents).await
    }

    /// The documents that PingSIX refuses, found by halves.
    async fn refused<'o>(&mut self, pairs: &[&'o Odd]) -> Vec<&'o Odd> {
        let mut open: Vec<Vec<&Odd>> =
            pairs.chunks(DOCUMENTS_PER_PUBLICATION).map(<[&Odd]>::to_vec).collect();
        let mut refused = Vec::new();
        while let Some(mut part) = open.pop() {
            if self.takes(&part).await {
                continue;
            }
            if let [only] = part.as_slice() {
                refused.push(*only);
                continue;
            }
            let half = part.split_off(part.len() / 2);
            open.extend([part, half]);
        }
        refused
    }
}

fn document(index: usize, odd: &Odd) -> (String, Bytes) {
    let value = json!({ "cert": odd.cert, "key": odd.key, "snis": [format!("n{index}.test")] });
    (format!("ssls/n{index}"), value.to_string().into())
}

/// Whether our rules accept it.
fn passes(odd: &Odd) -> bool {
    let (key, value) = document(0, odd);
    let options = ValidateOptions { prefix: SCOPE.to_owned(), ..ValidateOptions::default() };
    !is_refused(&validate_pairs([(format!("{SCOPE}/{key}"), value)], &options))
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_takes_every_accepted_certificate_and_key() {
    const TEST: &str = "keys";
    let Some(binary) = binary(TEST) else { return };
    let program = Program::find(TEST);
    let all = material::all(program.as_ref());
    let distinct: BTreeSet<&str> = all.iter().map(|odd| odd.what.as_str()).collect();
    assert_eq!(distinct.len(), all.len(), "two have one name");
    let (passing, others): (Vec<&Odd>, Vec<&Odd>) = all.iter().partition(|odd| passes(odd));

    let mut harness = Harness::start(&binary).await;
    let wrong = harness.refused(&passing).await;
    let told: Vec<&str> = wrong.iter().map(|odd| odd.what.as_str()).collect();
    assert!(told.is_empty(), "PingSIX refuses what passes: {told:#?}");

    // Of the mutations, most are refused by both; only those with a kind of their own are looked at one by one.
    let named: Vec<&Odd> = others.iter().copied().filter(|odd| !odd.is_mutation).collect();
    // The name of the pair is before the comma, and the deviation after it.
    let mut stricter: BTreeSet<&str> = BTreeSet::new();
    for odd in &named {
        if harness.takes(&[odd]).await {
            stricter.insert(odd.what.split_once(", ").map_or(&*odd.what, |(_, what)| what));
        }
    }
    print_message(&format!(
        "{TEST}: {} pairs, {} pass and are taken; of {} that have a name and do not pass, PingSIX takes {} kinds: {}",
        all.len(),
        passing.len(),
        named.len(),
        stricter.len(),
        stricter.into_iter().collect::<Vec<_>>().join("; "),
    ));
    assert!(passing.len() > 50 && others.len() > 100, "they are all alike");
    let expected = all.iter().filter(|odd| odd.is_sound).map(|odd| odd.what.as_str());
    let refused: BTreeSet<&str> = others.iter().map(|odd| odd.what.as_str()).collect();
    let lost: Vec<&str> = expected.filter(|what| refused.contains(what)).collect();
    assert!(lost.is_empty(), "what many have is refused: {lost:#?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_kind_of_key_that_passes_is_served_to_clients() {
    const TEST: &str = "keys of clients";
    let Some(binary) = binary(TEST) else { return };
    let Some(program) = Program::find(TEST) else { return };
    let mut harness = Harness::start(&binary).await;
    let kinds = material::kinds(&program);
    let taken: Vec<&Odd> = kinds.iter().collect();
    assert!(harness.takes(&taken).await, "PingSIX takes all of these, which is what makes them dangerous");
    let mut outcome: BTreeMap<(bool, bool), Vec<&str>> = BTreeMap::new();
    for (index, odd) in kinds.iter().enumerate() {
        let served = program.shakes_hands(harness.pingsix.address, &format!("n{index}.test"), &odd.cert);
        outcome.entry((passes(odd), served)).or_default().push(&odd.what);
    }
    let of =
        |passes, served| outcome.get(&(passes, served)).map_or_else(String::new, |names| names.join(", "));
    print_message(&format!(
        "{TEST}: served {}; refused by us and served by nobody {}; refused by us although served {}",
        of(true, true),
        of(false, false),
        of(false, true),
    ));
    assert_eq!(of(true, false), "", "passes, and no client is served");
    assert!(!of(true, true).is_empty() && !of(false, false).is_empty());
}
