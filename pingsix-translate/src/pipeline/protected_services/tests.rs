use super::Uses;
use crate::model::{Hostname, Kind, ObjectKey};
use crate::policy::{BrokenPolicy, ListenerChains, RuleProtection};

fn host(text: &str) -> Hostname {
    Hostname::parse(text).unwrap()
}

/// Different policies by number.
fn chains(number: usize) -> ListenerChains {
    let policy = ObjectKey::new(Kind::SecurityPolicy, "shop", format!("policy-{number}")).into();
    let broken = BrokenPolicy { policy, refusal: "".into() };
    let of_listener = (0, Err(broken.clone()), Err(broken), RuleProtection::OfRule);
    ListenerChains::new([of_listener].into_iter())
}

#[test]
fn another_host_with_other_policies_is_found_among_any_pairs() {
    let hosts = [None, Some(host("a.example")), Some(host("b.example"))];
    let pairs: Vec<(Option<Hostname>, ListenerChains)> =
        hosts.iter().flat_map(|host| (0..3).map(move |number| (host.clone(), chains(number)))).collect();
    // Every set of pairs, each pair twice.
    for set in 0..1_u32 << pairs.len() {
        let chosen: Vec<_> =
            (0..pairs.len()).filter(|bit| set & 1 << bit != 0).map(|bit| &pairs[bit]).collect();
        let mut uses = Uses::default();
        for (host, chains) in &chosen {
            assert!(uses.add(host.as_ref(), chains));
            assert!(!uses.add(host.as_ref(), chains));
            assert!(!uses.remove(host.as_ref(), chains));
        }
        for (host, chains) in &pairs {
            let is_other = chosen
                .iter()
                .any(|(other, of_other)| (other.is_none() || other != host) && of_other != chains);
            assert_eq!(uses.has_other(host.as_ref(), chains), is_other, "{chosen:?}");
        }
        for (host, chains) in &chosen {
            assert!(uses.remove(host.as_ref(), chains));
        }
        assert!(uses.pairs.is_empty() && uses.by_host.is_empty() && uses.by_chains.is_empty());
    }
}
