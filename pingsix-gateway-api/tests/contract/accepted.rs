//! PingSIX accepts the documents of all worlds: random Gateways and routes, Ingresses with and without annotations of
//! other controllers, and hostile tenants beside a victim whose data plane is too small for all of them. The test skips
//! the validation of documents and the bridge.

use std::collections::BTreeMap;
use std::env;
use std::net::{Ipv4Addr, SocketAddr};

use pingsix_translate::{Budget, DataPlane, Layout, Objects, Options, translate, translate_ingress};
use rand::rngs::SmallRng;
use rand::{Rng as _, SeedableRng as _};
use serde_json::Value;

use crate::etcd::Etcd;
use crate::process::{PingSix, Verdict, WAIT_TIMEOUT};
use crate::properties::adversary::attack::{Aim, attacks};
use crate::properties::adversary::fixtures::{infrastructure, victim};
use crate::properties::case::{decode, snapshot};
use crate::properties::generate::{Taste, table, table_of_sets};
use crate::properties::ingress;
use crate::run::{binary, cases, print_message, seed};

const SCOPE: &str = "/contract/accepted";

/// The sorts of worlds, in turn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sort {
    Routes,
    ListenerSets,
    Ingresses,
    /// Ingresses with annotations of other controllers.
    Annotations,
    Tenants,
}

const SORTS: [Sort; 5] =
    [Sort::Routes, Sort::ListenerSets, Sort::Ingresses, Sort::Annotations, Sort::Tenants];

/// The sorts of a run: the one of `CONTRACT_SORT`, or all.
fn sorts() -> Vec<Sort> {
    let Ok(wanted) = env::var("CONTRACT_SORT") else { return SORTS.to_vec() };
    let sorts: Vec<Sort> = SORTS.into_iter().filter(|sort| format!("{sort:?}") == wanted).collect();
    assert!(!sorts.is_empty(), "CONTRACT_SORT is one of {SORTS:?}, not {wanted}");
    sorts
}

impl Sort {
    const fn is_of_class(self) -> bool {
        matches!(self, Self::Ingresses | Self::Annotations)
    }

    fn objects(self, rng: &mut SmallRng) -> Vec<Value> {
        let taste = Taste { https: rng.random() };
        match self {
            Self::Routes => table(rng, taste),
            Self::ListenerSets => table_of_sets(rng, taste),
            Self::Ingresses => ingress::table(rng),
            Self::Annotations => {
                let mut objects = ingress::table(rng);
                ingress::annotated::add(rng, &mut objects);
                objects
            }
            Self::Tenants => {
                let listeners = rng.random_bool(0.3);
                let aim = Aim { younger: rng.random(), apart: rng.random(), listeners };
                let mut objects = infrastructure(rng, taste.https, listeners);
                objects.extend(victim(rng));
                objects.extend(attacks(rng, aim));
                objects
            }
        }
    }

    fn planes(self, objects: &[Value], options: &Options) -> Vec<DataPlane> {
        let translation = if self.is_of_class() {
            let mut all = Objects::default();
            for object in objects {
                all.insert(decode(object));
            }
            translate_ingress(&all.ingress_snapshot(ingress::CLASS).expect("there is the class"), options)
        } else {
            translate(&snapshot(objects), options)
        };
        translation.data_planes.into_values().collect()
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pingsix_takes_whatever_random_worlds_become() {
    const TEST: &str = "accepted";
    let Some(binary) = binary(TEST) else { return };
    let (sorts, worlds) = (sorts(), cases() as u64 / 64);
    let etcd = Etcd::start(&[SCOPE.to_owned()]).await;
    let pingsix = PingSix::start(&binary, etcd.address, SCOPE).await;
    let responder = SocketAddr::from((Ipv4Addr::LOCALHOST, 9080));
    let mut taken: BTreeMap<Sort, usize> = BTreeMap::new();
    let (mut edition, mut documents) = (0, 0);
    for world in 0..worlds {
        let mut rng = SmallRng::seed_from_u64(seed().wrapping_mul(1_000_003).wrapping_add(world));
        let sort = sorts[usize::try_from(world).unwrap() % sorts.len()];
        let objects = sort.objects(&mut rng);
        let is_per_port = !sort.is_of_class() && rng.random();
        let mut options = Options {
            layout: if is_per_port { Layout::PerPort } else { Layout::Shared },
            responder: rng.random_bool(0.7).then_some(responder),
            ..Options::default()
        };
        if rng.random_bool(0.4) {
            let whole = sort.planes(&objects, &options);
            let most = whole.iter().map(|plane| plane.size.bytes).max().unwrap_or_default();
            options.budget = Budget { bytes: most * rng.random_range(5..100) / 100, ..Budget::default() };
        }
        for plane in sort.planes(&objects, &options) {
            edition += 1;
            documents += plane.config.len();
            let revision = etcd.publish(SCOPE, &plane.config, edition).await;
            let verdict = pingsix.verdict(revision, WAIT_TIMEOUT).await;
            assert_eq!(
                verdict,
                Verdict::Accepted,
                "world {world}, {sort:?}, {options:?}: {}",
                plane.config.to_static()
            );
            *taken.entry(sort).or_default() += 1;
        }
    }
    print_message(&format!(
        "{TEST}: {worlds} worlds of {documents} documents, data planes taken: {taken:?}, seed {}",
        seed()
    ));
    assert!(
        sorts.iter().all(|sort| taken.get(sort).is_some_and(|count| *count as u64 > worlds / 10)),
        "{taken:?}"
    );
}
