//! Writes of single objects.

use super::*;

#[tokio::test(start_paused = true)]
async fn a_verdict_is_written_once_and_its_echo_leads_to_nothing() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 3));
    rig.board.set(route_key("cart"), judged("cart", "One.", 3));
    rig.run(secs(60)).await;
    let requests = rig.api.seen(|_| true);
    assert_eq!(requests.len(), 1, "{requests:?}");
    assert_eq!(message(&rig.status(CART)).unwrap(), "One.");
    assert_eq!(rig.status(CART)["parents"][0]["conditions"][0]["observedGeneration"], 3);
    assert_eq!(rig.api.get(CART).unwrap()["metadata"]["labels"]["kept"], "yes");
    assert_eq!(rig.api.get(CART).unwrap()["spec"], route("cart", 3)["spec"]);
    // A later time causes no write.
    rig.board.set(route_key("cart"), judged("cart", "One.", 3));
    rig.board.touched(&route_key("cart"));
    rig.run(secs(60)).await;
    assert_eq!(rig.api.seen(|_| true).len(), 1);
    assert!(rig.writer.counts().suppressed >= 1);
    assert_eq!(rig.writer.counts().written, 1);
}

#[tokio::test(start_paused = true)]
async fn while_the_store_lags_behind_our_own_write_it_is_not_made_again() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    sleep(secs(5)).await;
    // Another event of the object, older than our write.
    rig.board.touched(&route_key("cart"));
    sleep(secs(5)).await;
    assert_eq!(rig.api.seen(|_| true).len(), 1);
    // The next verdict is merged into the written object instead of the older stored one.
    rig.board.set(route_key("cart"), judged("cart", "Two.", 1));
    sleep(secs(5)).await;
    assert_eq!(rig.api.seen(|_| true).len(), 2);
    assert_eq!(rig.writer.counts().conflicts, 0);
    assert_eq!(message(&rig.status(CART)).unwrap(), "Two.");
}

#[tokio::test(start_paused = true)]
async fn a_store_that_never_catches_up_is_believed_in_the_end() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    sleep(secs(5)).await;
    sleep(secs(60)).await;
    rig.board.touched(&route_key("cart"));
    sleep(secs(5)).await;
    // The old version meets a conflict, and nothing needs to be written.
    assert_eq!(rig.writer.counts(), StatusCounts { written: 1, suppressed: 0, conflicts: 1, failures: 0 });
    rig.run(secs(5)).await;
    assert_eq!(rig.writer.counts().written, 1);
}

#[tokio::test(start_paused = true)]
async fn a_conflict_is_merged_again_and_entries_of_others_stay_to_the_byte() {
    let mut rig = Rig::new();
    let mut object = route("cart", 1);
    object["status"] = json!({"parents": [foreign_entry("old")], "odd": {"x": null}});
    rig.put(CART, object);
    // The store has not received this change yet.
    rig.api.change(CART, |object| object["status"]["parents"] = json!([foreign_entry("new")]));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    sleep(secs(1)).await;
    let status = rig.status(CART);
    assert_eq!(status["parents"][0].to_string(), foreign_entry("new").to_string());
    assert_eq!(status["odd"], json!({"x": null}));
    assert_eq!(message(&status).unwrap(), "One.");
    assert_eq!(rig.writer.counts(), StatusCounts { written: 1, suppressed: 0, conflicts: 1, failures: 0 });
    let methods: Vec<String> = rig.api.seen(|_| true).iter().map(|seen| seen.method.to_string()).collect();
    assert_eq!(methods, ["PATCH", "GET", "PATCH"]);
    rig.run(secs(10)).await;
    assert_eq!(rig.writer.counts().written, 1);
}

#[tokio::test(start_paused = true)]
async fn foreign_changes_of_our_entry_are_reverted_and_foreign_entries_stay() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(secs(5)).await;
    rig.api.change(CART, |object| {
        let parents = object["status"]["parents"].as_array_mut().unwrap();
        parents.insert(0, foreign_entry("first"));
    });
    rig.run(secs(5)).await;
    assert_eq!(rig.writes(CART), 1);
    rig.api.change(CART, |object| object["status"]["parents"] = json!([foreign_entry("alone")]));
    rig.run(secs(5)).await;
    assert_eq!(rig.writes(CART), 2);
    assert_eq!(message(&rig.status(CART)).unwrap(), "One.");
    assert_eq!(rig.status(CART)["parents"][0], foreign_entry("alone"));
}

#[tokio::test(start_paused = true)]
async fn failed_writes_of_an_object_delay_no_other_and_are_retried_ever_later() {
    for code in [403, 429, 500, 503] {
        let mut rig = Rig::new();
        rig.put(CART, route("cart", 1));
        rig.put(&route_path("other"), route("other", 1));
        rig.api.script(move |seen| if seen.path == CART { Fate::Failed(code) } else { Fate::Served });
        rig.board.set(route_key("cart"), judged("cart", "One.", 1));
        rig.board.set(route_key("other"), judged("other", "One.", 1));
        rig.run(ms(50)).await;
        assert_eq!(message(&rig.status(&route_path("other"))).unwrap(), "One.");
        rig.run(secs(300)).await;
        let attempts = rig.api.writes(CART);
        let waits: Vec<Duration> =
            attempts.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at)).collect();
        assert!((10..=25).contains(&attempts.len()), "{attempts:?}");
        assert!(waits[0] <= ms(510), "{waits:?}");
        let longest = *waits.iter().max().unwrap();
        assert!(longest > secs(15) && longest <= secs(31), "{waits:?}");
        // The latest verdict, once it is possible.
        rig.board.set(route_key("cart"), judged("cart", "Two.", 1));
        rig.api.script(|_| Fate::Served);
        rig.run(secs(31)).await;
        assert_eq!(message(&rig.status(CART)).unwrap(), "Two.");
        assert_eq!(rig.writes(CART), attempts.len() + 1);
    }
}

#[tokio::test(start_paused = true)]
async fn a_server_that_asks_for_time_gets_it() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.api.script(|_| Fate::Throttled(7));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(secs(20)).await;
    let attempts = rig.api.writes(CART);
    assert_eq!(attempts.len(), 3, "{attempts:?}");
    assert!(attempts.windows(2).all(|pair| pair[1].at - pair[0].at >= secs(7)));
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_never_comes_is_given_up_and_the_write_is_not_repeated() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.api.script(|_| Fate::Unanswered);
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(secs(5)).await;
    rig.api.script(|_| Fate::Served);
    rig.run(secs(60)).await;
    // The write had arrived.
    assert_eq!(message(&rig.status(CART)).unwrap(), "One.");
    assert_eq!(rig.writes(CART), 1);
    assert_eq!(rig.writer.counts().failures, 1);
}

#[tokio::test(start_paused = true)]
async fn a_deleted_object_is_forgotten_and_its_namesake_is_written() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.api.delete(CART);
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    sleep(secs(1)).await;
    rig.run(secs(300)).await;
    assert!(rig.writes(CART) <= 3, "{}", rig.writes(CART));
    assert_eq!(rig.board.wanted(&route_key("cart")), None);
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "Two.", 1));
    rig.run(secs(2)).await;
    assert_eq!(message(&rig.status(CART)).unwrap(), "Two.");
}

#[tokio::test(start_paused = true)]
async fn a_follower_writes_nothing_and_a_new_leader_checks_every_object_once() {
    let mut rig = Rig::following();
    for index in 0..50 {
        let name = format!("r{index}");
        rig.put(&route_path(&name), route(&name, 1));
        rig.board.set(route_key(&name), judged(&name, "One.", 1));
    }
    rig.run(secs(60)).await;
    assert!(rig.api.seen(|_| true).is_empty());
    // Some of them another replica has written, with the same verdict.
    for index in 0..20 {
        let name = format!("r{index}");
        let entry = json!({
            "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"},
            "controllerName": OURS,
            "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "One.",
                "observedGeneration": 1, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        });
        rig.api.change(&route_path(&name), |object| object["status"] = json!({"parents": [entry]}));
    }
    rig.run(secs(1)).await;
    rig.lead();
    rig.run(secs(60)).await;
    assert_eq!(rig.api.seen(|_| true).len(), 30);
    rig.follow();
    rig.run(secs(1)).await;
    rig.lead();
    rig.run(secs(60)).await;
    assert_eq!(rig.api.seen(|_| true).len(), 30, "nothing has changed");
}

#[tokio::test(start_paused = true)]
async fn a_held_status_is_not_written_until_it_is_set_again() {
    let mut rig = Rig::following();
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.board.hold(&route_key("cart"));
    rig.board.hold(&route_key("unknown"));
    assert!(!rig.board.contains(&route_key("cart")) && !rig.board.contains(&route_key("unknown")));
    rig.lead();
    rig.board.touched(&route_key("cart"));
    rig.run(secs(60)).await;
    assert_eq!(rig.writer.counts().written, 0);
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(secs(5)).await;
    assert_eq!(message(&rig.status(CART)).unwrap(), "One.");

    // A released object with a new status is not released by the older write.
    rig.put(WEB, gateway("ours", 1));
    rig.follow();
    rig.run(secs(1)).await;
    rig.board.set(web(), judged_gateway(1));
    rig.board.set(web(), Wanted::Released);
    rig.board.hold(&web());
    rig.lead();
    rig.run(secs(60)).await;
    assert_eq!(rig.writes(WEB), 0);
    rig.board.set(web(), Wanted::Released);
    rig.run(secs(5)).await;
    assert_eq!(rig.board.wanted(&web()), None, "it is done");
}

#[tokio::test(start_paused = true)]
async fn a_loss_of_leadership_abandons_writes_and_keeps_newer_statuses() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 1));
    rig.api.script(|_| Fate::Failed(503));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(ms(100)).await;
    assert_eq!(rig.writes(CART), 1);
    rig.follow();
    rig.api.script(|_| Fate::Served);
    rig.run(secs(60)).await;
    assert_eq!(rig.writes(CART), 1, "a retry would be a write of a replica that does not lead");
    // The other replica has judged a newer generation, which the store here does not have yet.
    rig.api.change(CART, |object| {
        object["metadata"]["generation"] = json!(2);
        object["status"] = json!({"parents": [{
            "parentRef": {"group": "gateway.networking.k8s.io", "kind": "Gateway", "name": "web"},
            "controllerName": OURS,
            "conditions": [{"type": "Accepted", "status": "True", "reason": "Accepted", "message": "Newer.",
                "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"}],
        }]});
    });
    rig.lead();
    sleep(secs(1)).await;
    assert_eq!(message(&rig.status(CART)).unwrap(), "Newer.");
    rig.run(secs(5)).await;
    assert_eq!(message(&rig.status(CART)).unwrap(), "Newer.");
    // The write follows after the verdict on the newer generation.
    rig.board.set(route_key("cart"), judged("cart", "Newest.", 2));
    rig.run(secs(5)).await;
    assert_eq!(message(&rig.status(CART)).unwrap(), "Newest.");
}

#[tokio::test(start_paused = true)]
async fn a_verdict_on_an_older_generation_is_written_and_says_so() {
    let mut rig = Rig::new();
    rig.put(CART, route("cart", 5));
    rig.board.set(route_key("cart"), judged("cart", "Four.", 4));
    rig.run(secs(1)).await;
    assert_eq!(rig.status(CART)["parents"][0]["conditions"][0]["observedGeneration"], 4);
    rig.board.set(route_key("cart"), judged("cart", "Five.", 5));
    rig.run(secs(1)).await;
    assert_eq!(rig.status(CART)["parents"][0]["conditions"][0]["observedGeneration"], 5);
}

#[tokio::test(start_paused = true)]
async fn a_lease_that_has_run_out_stops_the_writer_before_anybody_tells_it() {
    let mut rig = Rig::following();
    rig.put(CART, route("cart", 1));
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.lead.send_replace(Some(Instant::now() + secs(10)));
    rig.run(secs(1)).await;
    assert_eq!(rig.writes(CART), 1);
    rig.run(secs(10)).await;
    rig.board.set(route_key("cart"), judged("cart", "Two.", 1));
    rig.run(secs(60)).await;
    assert_eq!(rig.writes(CART), 1);
}

/// A process that is paused during requests sends them when it continues, unless they are abandoned.
#[tokio::test(start_paused = true)]
async fn a_write_of_a_stopped_process_is_not_made_when_another_leads() {
    // The order of objects with the same due time is random.
    for _ in 0..20 {
        let mut rig = Rig::without_writer();
        rig.put(CART, route("cart", 1));
        rig.api.script(|_| Fate::Slow { before: secs(3), after: ms(1) });
        let mut process = Box::pin(rig.writer.clone().run(rig.leadership()));
        rig.lead.send_replace(Some(Instant::now() + secs(8)));
        rig.board.set(route_key("cart"), judged("cart", "One.", 1));
        assert!(timeout(secs(1), &mut process).await.is_err());
        assert_eq!(rig.writes(CART), 1, "it is on its way");
        sleep(secs(60)).await;
        assert!(timeout(secs(10), &mut process).await.is_err());
        assert_eq!(rig.status(CART), Value::Null);
    }
}

#[tokio::test(start_paused = true)]
async fn a_gateway_with_a_thousand_new_routes_settles_after_a_few_writes() {
    for spacing in [ms(0), ms(1), ms(3), ms(10)] {
        let mut rig = Rig::new();
        rig.put(WEB, gateway("ours", 1));
        rig.board.set(web(), judged_gateway(0));
        rig.run(secs(5)).await;
        let before = rig.writes(WEB);
        for attached in 1..=1000 {
            rig.board.set(web(), judged_gateway(attached));
            sleep(spacing).await;
            rig.watch();
        }
        let last = Instant::now();
        while rig.status(WEB)["listeners"][0]["attachedRoutes"] != 1000 {
            rig.run(ms(5)).await;
        }
        assert!(last.elapsed() <= secs(1), "{spacing:?}: {:?}", last.elapsed());
        rig.run(secs(5)).await;
        let writes = rig.writes(WEB) - before;
        assert!(writes <= 15, "{spacing:?}: {writes}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_single_change_is_written_at_once() {
    let mut rig = Rig::new();
    rig.put(WEB, gateway("ours", 1));
    for attached in 1..20 {
        rig.board.set(web(), judged_gateway(attached));
        rig.run(ms(10)).await;
        assert_eq!(rig.status(WEB)["listeners"][0]["attachedRoutes"], attached);
        rig.run(secs(2)).await;
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_has_one_write_on_its_way_and_all_have_a_bounded_number() {
    let mut rig = Rig::new();
    let busy = Arc::new(parking_lot::Mutex::new(Vec::<(Instant, String)>::new()));
    let arrived = busy.clone();
    rig.api.script(move |seen: &RecordedRequest| {
        let mut busy = arrived.lock();
        busy.retain(|(until, _)| *until > seen.at);
        assert!(busy.iter().all(|(_, path)| *path != seen.path), "two writes of {}", seen.path);
        busy.push((seen.at + ms(500), seen.path.clone()));
        assert!(busy.len() <= 16);
        Fate::Slow { before: ms(400), after: ms(100) }
    });
    for index in 0..100 {
        let name = format!("r{index}");
        rig.put(&route_path(&name), route(&name, 1));
    }
    for round in 0..20 {
        for index in 0..100 {
            let name = format!("r{index}");
            rig.board.set(route_key(&name), judged(&name, &format!("{round}"), 1));
        }
        rig.run(ms(150)).await;
    }
    rig.run(secs(10)).await;
    for index in 0..100 {
        assert_eq!(message(&rig.status(&route_path(&format!("r{index}")))).unwrap(), "19");
    }
}

#[tokio::test(start_paused = true)]
async fn a_field_that_an_older_schema_drops_is_not_written_repeatedly() {
    let mut rig = Rig::new();
    rig.api.storing(|object| {
        if let Some(status) = object.get_mut("status").and_then(Value::as_object_mut) {
            status.remove("attachedListenerSets");
        }
    });
    rig.put(WEB, gateway("ours", 1));
    rig.board.set(web(), judged_gateway(1));
    rig.run(secs(5)).await;
    for label in 0..10 {
        rig.api.change(WEB, |object| object["metadata"]["labels"] = json!({"n": label.to_string()}));
        rig.run(secs(5)).await;
    }
    assert_eq!(rig.writes(WEB), 1);
    rig.board.set(web(), judged_gateway(2));
    rig.run(secs(5)).await;
    assert_eq!(rig.writes(WEB), 2);
}

#[tokio::test(start_paused = true)]
async fn a_route_that_is_released_loses_our_entry_alone() {
    let mut rig = Rig::new();
    let mut object = route("cart", 1);
    object["status"] = json!({"parents": [foreign_entry("stays")]});
    rig.put(CART, object);
    rig.board.set(route_key("cart"), judged("cart", "One.", 1));
    rig.run(secs(5)).await;
    assert_eq!(rig.readers.with_entries_of(OURS), [route_key("cart")]);
    rig.board.set(route_key("cart"), Wanted::Released);
    rig.run(secs(5)).await;
    assert_eq!(rig.status(CART), json!({"parents": [foreign_entry("stays")]}));
    assert_eq!(rig.writes(CART), 2);
    assert!(rig.readers.with_entries_of(OURS).is_empty());
    // This covers an object without a verdict of this process, and an entry that reappears by a delayed write.
    rig.board.removed(&route_key("cart"));
    rig.api.change(CART, |object| {
        let mut entry = foreign_entry("of a process before");
        entry["controllerName"] = json!(OURS);
        object["status"]["parents"].as_array_mut().unwrap().push(entry);
    });
    rig.run(secs(1)).await;
    for key in rig.readers.with_entries_of(OURS) {
        rig.board.set(key, Wanted::Released);
    }
    rig.run(secs(5)).await;
    assert_eq!(rig.status(CART), json!({"parents": [foreign_entry("stays")]}));
    rig.api.change(CART, |object| {
        let mut entry = foreign_entry("late");
        entry["controllerName"] = json!(OURS);
        object["status"]["parents"].as_array_mut().unwrap().push(entry);
    });
    rig.run(secs(5)).await;
    assert_eq!(rig.status(CART), json!({"parents": [foreign_entry("stays")]}));
}

#[tokio::test(start_paused = true)]
async fn a_gateway_that_is_released_keeps_what_its_new_owner_said() {
    let mut rig = Rig::new();
    rig.put(WEB, gateway("ours", 1));
    let address = Address::Ip([192, 0, 2, 1].into());
    let wanted = Wanted::Gateway { verdict: Box::new(gateway_verdict(1, 1)), addresses: Some(vec![address]) };
    rig.board.set(web(), wanted);
    rig.run(secs(5)).await;
    assert_eq!(rig.status(WEB)["addresses"], json!([{"type": "IPAddress", "value": "192.0.2.1"}]));
    let theirs = json!({"type": "Programmed", "status": "True", "reason": "Programmed", "message": "Theirs.",
        "observedGeneration": 2, "lastTransitionTime": "2026-01-01T00:00:00Z"});
    rig.api.change(WEB, |object| {
        object["metadata"]["generation"] = json!(2);
        object["spec"]["gatewayClassName"] = json!("theirs");
        object["status"]["conditions"].as_array_mut().unwrap().push(theirs.clone());
    });
    rig.board.set(web(), Wanted::Released);
    rig.run(secs(5)).await;
    assert_eq!(rig.status(WEB), json!({"conditions": [theirs], "listeners": [], "attachedListenerSets": 0}));
    assert_eq!(rig.board.keys(), []);
    assert_eq!(rig.writer.counts().written, 2);
}

#[tokio::test(start_paused = true)]
async fn an_ingress_gets_the_addresses_and_loses_them_when_they_are_ours() {
    const PATH: &str = "/apis/networking.k8s.io/v1/namespaces/shop/ingresses/cart";
    let mut rig = Rig::new();
    let key = ObjectKey::new(Kind::Ingress, "shop", "cart");
    rig.put(
        PATH,
        json!({"metadata": {"name": "cart", "namespace": "shop", "annotations": {"a": "b"}}, "spec": {}}),
    );
    let addresses = vec![Address::Hostname("lb.example.com".to_owned())];
    rig.board.set(key.clone(), Wanted::Ingress { addresses: addresses.clone() });
    rig.run(secs(5)).await;
    assert_eq!(rig.status(PATH), json!({"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}));
    assert_eq!(rig.api.get(PATH).unwrap()["metadata"]["annotations"], json!({"a": "b"}));
    rig.board.set(key.clone(), Wanted::Released);
    rig.run(secs(5)).await;
    assert_eq!(rig.status(PATH), json!({"loadBalancer": {}}));
    rig.board.set(key.clone(), Wanted::Ingress { addresses });
    rig.run(secs(5)).await;
    let theirs = json!({"loadBalancer": {"ingress": [{"ip": "198.51.100.1"}]}});
    rig.follow();
    rig.api.change(PATH, |object| object["status"] = theirs.clone());
    rig.run(secs(1)).await;
    rig.board.set(key, Wanted::Released);
    rig.lead();
    rig.run(secs(5)).await;
    assert_eq!(rig.status(PATH), theirs);
}

#[tokio::test(start_paused = true)]
async fn a_policy_has_an_entry_per_gateway_beside_those_of_others() {
    const PATH: &str = "/apis/gateway.networking.k8s.io/v1/namespaces/shop/backendtlspolicies/tls";
    let mut rig = Rig::new();
    let key = ObjectKey::new(Kind::BackendTlsPolicy, "shop", "tls");
    let theirs = json!({"ancestorRef": {"name": "web"}, "controllerName": THEIRS, "conditions": []});
    rig.put(
        PATH,
        json!({
            "metadata": {"name": "tls", "namespace": "shop", "generation": 1},
            "spec": {"targetRefs": [{"group": "", "kind": "Service", "name": "cart"}],
                "validation": {"hostname": "a.example", "wellKnownCACertificates": "System"}},
            "status": {"ancestors": [theirs]},
        }),
    );
    let verdict = |gateway: &str| PolicyVerdict {
        key: Arc::new(key.clone()),
        generation: 1,
        ancestor: Ancestor::Owner(Arc::new(ObjectKey::new(Kind::Gateway, "infra", gateway))),
        conditions: accepted("A sentence.", 1),
    };
    rig.board.set(key.clone(), Wanted::Policy(vec![verdict("one"), verdict("two")]));
    rig.run(secs(5)).await;
    let ancestors = rig.status(PATH)["ancestors"].take();
    assert_eq!(ancestors.as_array().unwrap().len(), 3);
    assert_eq!(ancestors[0], theirs);
    rig.board.set(key.clone(), Wanted::Released);
    rig.run(secs(5)).await;
    assert_eq!(rig.status(PATH), json!({"ancestors": [theirs]}));
}
