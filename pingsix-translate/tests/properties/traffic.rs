//! TrafficPolicies, alone and beside SecurityPolicies: which of them count for a request, and what they leave alone.

use pingsix_translate::Layout;

use crate::case::Setting;
use crate::generate::traffic::table_of_traffic;
use crate::security::check_interference;
use crate::{check_routing, check_tables, order, refused_by_pingsix, wrong_verdicts};

#[test]
fn every_answer_under_traffic_policies_is_the_oracles() {
    for layout in [Layout::Shared, Layout::PerPort] {
        let tally = check_routing(table_of_traffic, Setting { layout, responder: true }, 150, 2);
        assert!(tally.treated * 20 > tally.checks, "policies hardly ever count: {tally:?}");
    }
}

#[test]
fn verdicts_on_routes_under_traffic_policies_are_the_oracles() {
    check_tables(table_of_traffic, wrong_verdicts);
}

#[test]
fn services_of_traffic_policies_are_accepted_by_pingsix() {
    check_tables(table_of_traffic, refused_by_pingsix);
}

#[test]
fn the_order_of_traffic_policies_changes_nothing() {
    check_tables(table_of_traffic, order::difference);
}

#[test]
fn a_traffic_policy_changes_no_answer_that_it_does_not_target() {
    check_interference(table_of_traffic);
}
