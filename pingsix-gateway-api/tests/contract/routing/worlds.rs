//! The answers of the model for a table in all orders of insertion, or in many.

use std::collections::BTreeMap;

use pingsix_translate::pingsix::{Config, Outcome, Request, RouteTable, Router};

use super::agrees;
use crate::client::Reply;
use crate::rng::SeededRng;

/// The distinct ways in which a table can answer some requests. One way is called a world; an order of insertion
/// lives in one of them, or is refused.
pub(super) struct Worlds<'c> {
    /// By request: the distinct outcomes.
    outcomes: Vec<Vec<Outcome<'c>>>,
    /// By request, the index of the outcome; each world once.
    distinct: Vec<Vec<u16>>,
    refused: usize,
}

impl<'c> Worlds<'c> {
    /// All orders.
    pub(super) fn of(config: &'c Config, requests: &[Request]) -> Self {
        let table = RouteTable::new(config);
        let mut orders = vec![vec![]];
        for index in 0..table.len() {
            let longer = |order: &Vec<usize>| -> Vec<Vec<usize>> {
                let insert = |at: usize| {
                    let mut order = order.clone();
                    order.insert(at, index);
                    order
                };
                (0..=order.len()).map(insert).collect()
            };
            orders = orders.iter().flat_map(longer).collect();
        }
        Self::in_orders(&table, requests, orders)
    }

    /// Some orders.
    pub(super) fn drawn(
        config: &'c Config,
        requests: &[Request],
        rng: &mut SeededRng,
        orders: usize,
    ) -> Self {
        let table = RouteTable::new(config);
        let orders = (0..orders).map(|_| rng.order(table.len())).collect();
        Self::in_orders(&table, requests, orders)
    }

    fn in_orders(table: &RouteTable<'c>, requests: &[Request], orders: Vec<Vec<usize>>) -> Self {
        let mut this = Self { outcomes: vec![Vec::new(); requests.len()], distinct: Vec::new(), refused: 0 };
        // The route determines the outcome of a request in any order; the test computes each outcome once.
        let mut known = BTreeMap::new();
        for order in orders {
            let Ok(router) = table.insert_in(order) else {
                this.refused += 1;
                continue;
            };
            let mut world = Vec::with_capacity(requests.len());
            for (index, request) in requests.iter().enumerate() {
                let found = (index, lookups(&router, request));
                world.push(
                    *known.entry(found).or_insert_with(|| this.outcome(index, router.outcome(request))),
                );
            }
            if !this.distinct.contains(&world) {
                this.distinct.push(world);
            }
        }
        this
    }

    fn outcome(&mut self, request: usize, outcome: Outcome<'c>) -> u16 {
        let known = &mut self.outcomes[request];
        let index = known.iter().position(|held| *held == outcome).unwrap_or_else(|| {
            known.push(outcome);
            known.len() - 1
        });
        u16::try_from(index).unwrap()
    }

    pub(super) fn len(&self) -> usize {
        self.distinct.len()
    }

    pub(super) fn some_order_is_refused(&self) -> bool {
        self.refused > 0
    }

    pub(super) fn some_order_is_accepted(&self) -> bool {
        !self.distinct.is_empty()
    }

    /// The first world in which the model gives all these responses. There must be one.
    pub(super) fn explain(&self, requests: &[Request], replies: &[Reply], config: &Config) -> usize {
        let wrong_in = |world: &[u16]| -> Vec<usize> {
            let wrong = |&index: &usize| {
                let outcome = &self.outcomes[index][usize::from(world[index])];
                !agrees(outcome, &requests[index], &replies[index])
            };
            (0..requests.len()).filter(wrong).collect()
        };
        let wrong: Vec<Vec<usize>> = self.distinct.iter().map(|world| wrong_in(world)).collect();
        wrong.iter().position(Vec::is_empty).unwrap_or_else(|| {
            let (world, wrong) = wrong.iter().enumerate().min_by_key(|(_, wrong)| wrong.len()).unwrap();
            let each = wrong.iter().map(|&index| {
                let outcome = &self.outcomes[index][usize::from(self.distinct[world][index])];
                let others = self.outcomes[index].len() - 1;
                format!(
                    "{:?}\n  model: {outcome:?}, and {others} others\n  PingSIX: {:?}",
                    requests[index], replies[index]
                )
            });
            panic!(
                "{}\nin the nearest of {} worlds of {}",
                each.collect::<Vec<_>>().join("\n"),
                self.len(),
                config.to_static()
            )
        })
    }
}

/// The routes that decide: for the request itself, and for the preflight it may be.
fn lookups<'c>(router: &Router<'c>, request: &Request) -> [Option<&'c str>; 2] {
    let host = request.routing_host();
    let found = router.lookup(host, &request.path, &request.method);
    let asked = request.first_header("access-control-request-method");
    let preflight = asked.and_then(|method| router.lookup_preflight(host, &request.path, method));
    [found, preflight].map(|key| key.map(|key| key.id.as_str()))
}
