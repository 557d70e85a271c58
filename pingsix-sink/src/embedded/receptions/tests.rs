//! What is made of the requests of a client.

use bytes::Bytes;

use super::*;

/// What PingSIX waits after a list that it cannot use, and reads it.
const PAUSE: Duration = Duration::from_millis(3_020);

fn range() -> KeyRange {
    KeyRange::new(Bytes::from_static(b"/p/web/"), Bytes::from_static(b"/p/web0"))
}

fn of(receptions: &Receptions) -> (usize, Option<i64>, Option<i64>) {
    let Reception { clients, accepted, refused, .. } = receptions.of(&Scope::new("/p/web").unwrap());
    (clients, accepted.map(Revision::get), refused.map(Revision::get))
}

fn proven(receptions: &Receptions) -> Option<i64> {
    receptions.of(&Scope::new("/p/web").unwrap()).proven.map(Revision::get)
}

async fn pass(time: Duration) {
    tokio::time::sleep(time).await;
}

fn asked() -> Asked {
    Asked { at: Instant::now(), is_like_pingsix: true }
}

impl Client {
    fn lists(&self, revision: i64) {
        self.listed(&range(), revision, asked());
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_watches_on_has_taken_what_it_was_told() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    client.lists(7);
    client.watches(&range(), Some(7));
    assert_eq!(of(&receptions), (1, None, None));
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (1, Some(7), None));
    client.told(&range(), 9);
    assert_eq!(of(&receptions), (1, Some(7), None));
    pass(TAKEN / 2).await;
    client.told(&range(), 12);
    pass(TAKEN / 2).await;
    assert_eq!(of(&receptions), (1, Some(7), None), "neither has stood for long");
    pass(TAKEN / 2).await;
    assert_eq!(of(&receptions), (1, Some(12), None));
    // Of two, both have to.
    let other = receptions.connect();
    other.watches(&range(), Some(12));
    assert_eq!(of(&receptions), (2, None, None));
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (2, Some(12), None));
    other.told(&range(), 20);
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (2, Some(12), None));
    drop(client);
    assert_eq!(of(&receptions), (1, Some(20), None));
}

#[tokio::test(start_paused = true)]
async fn what_was_received_is_proven_by_a_ping_that_was_sent_later() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    client.watches(&range(), Some(7));
    pass(TAKEN).await;
    assert_eq!(proven(&receptions), Some(7), "it asked for what comes after it");
    client.told(&range(), 9);
    pass(Duration::from_mins(1)).await;
    assert_eq!((of(&receptions).1, proven(&receptions)), (Some(9), Some(7)), "it is only silent");
    // The ping may have been sent before that was written.
    client.answered();
    client.told(&range(), 12);
    pass(TAKEN).await;
    assert_eq!(proven(&receptions), Some(7));
    client.answered();
    assert_eq!(proven(&receptions), Some(7), "it may be letting go");
    pass(TAKEN).await;
    assert_eq!(proven(&receptions), Some(9));
    client.answered();
    pass(TAKEN).await;
    assert_eq!(proven(&receptions), Some(12));
    // One that says nothing of what it knows has nothing to prove.
    let other = receptions.connect();
    other.watches(&range(), None);
    pass(TAKEN).await;
    assert_eq!((of(&receptions), proven(&receptions)), ((2, None, None), None));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_lets_go_and_lists_again_and_again_refuses() {
    let receptions = Receptions::default();
    let mut changes = receptions.changes();
    let client = receptions.connect();
    client.lists(7);
    client.watches(&range(), Some(7));
    pass(TAKEN).await;
    client.told(&range(), 9);
    client.left(&range(), false);
    pass(Duration::from_secs(1)).await;
    client.lists(10);
    pass(PAUSE).await;
    assert_eq!(of(&receptions), (1, None, None), "it may watch elsewhere");
    changes.mark_unchanged();
    client.lists(15);
    assert!(changes.has_changed().unwrap());
    assert_eq!(of(&receptions), (1, None, Some(10)), "what it lists next is another matter");
    client.follows(&range());
    client.watches(&range(), Some(15));
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (1, Some(15), None));
    // A connection that is lost says nothing, nor does the first list on another.
    client.told(&range(), 20);
    client.left(&range(), false);
    drop(client);
    let restarted = receptions.connect();
    restarted.lists(20);
    pass(Duration::from_mins(1)).await;
    assert_eq!(of(&receptions), (0, None, None));
}

#[tokio::test(start_paused = true)]
async fn a_watch_that_we_end_is_no_sign_of_a_refusal() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    client.watches(&range(), Some(7));
    client.left(&range(), true);
    pass(Duration::from_secs(1)).await;
    client.lists(10);
    pass(PAUSE).await;
    client.lists(10);
    assert_eq!(of(&receptions), (1, None, None), "once");
    pass(PAUSE).await;
    client.lists(10);
    assert_eq!(of(&receptions), (1, None, Some(10)), "and again");
    // It does not come back: perhaps it reads elsewhere.
    pass(FORGOTTEN).await;
    assert_eq!(of(&receptions), (1, None, None));
}

#[tokio::test(start_paused = true)]
async fn a_client_that_begins_with_what_it_cannot_use_is_known_by_how_it_waits() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    client.lists(7);
    for _ in 0..2 {
        pass(PAUSE).await;
        client.lists(7);
        assert_eq!(of(&receptions), (0, None, None));
    }
    pass(PAUSE).await;
    client.lists(8);
    assert_eq!(of(&receptions), (0, None, Some(7)));
    pass(PAUSE).await;
    client.lists(9);
    assert_eq!(of(&receptions), (0, None, Some(8)), "it is known by now");
    // Beside one that watches, it may be anybody.
    let other = receptions.connect();
    other.watches(&range(), Some(7));
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (1, Some(7), None));
}

#[tokio::test(start_paused = true)]
async fn whoever_lists_at_other_times_or_with_another_program_refuses_nothing() {
    let millis = Duration::from_millis;
    for (pause, is_like_pingsix) in [
        (millis(0), true),
        // Another server sends it away, one that is slow.
        (millis(400), true),
        (millis(1_050), true),
        (millis(2_100), true),
        // Every three seconds, which begin with the request.
        (millis(2_985), true),
        (PAUSE, false),
        (millis(5_000), true),
        (millis(8_000), true),
        (millis(60_000), true),
    ] {
        for has_watched in [false, true] {
            let receptions = Receptions::default();
            let client = receptions.connect();
            if has_watched {
                client.watches(&range(), Some(7));
                client.left(&range(), false);
            }
            for _ in 0..20 {
                pass(pause).await;
                client.listed(&range(), 7, Asked { at: Instant::now(), is_like_pingsix });
                assert_eq!(of(&receptions).2, None, "{pause:?} {is_like_pingsix} {has_watched}");
            }
            // Nor does it help to look like PingSIX once in a while.
            pass(PAUSE).await;
            client.lists(7);
            assert_eq!(of(&receptions).2, None, "{pause:?} {is_like_pingsix} {has_watched}");
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_client_that_is_sent_away_has_taken_what_it_listed() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    for _ in 0..20 {
        client.lists(7);
        client.follows(&range());
        pass(PAUSE).await;
    }
    assert_eq!(of(&receptions), (0, None, None));
    // Who never listed leaves nothing behind.
    let other = receptions.connect();
    other.follows(&range());
    assert!(receptions.0.state.lock().clients.values().last().unwrap().is_empty());
}

#[tokio::test(start_paused = true)]
async fn silence_does_not_count_against_a_refusal() {
    let receptions = Receptions::default();
    let (paused, awake) = (receptions.connect(), receptions.connect());
    for client in [&paused, &awake] {
        client.watches(&range(), Some(7));
    }
    pass(TAKEN).await;
    paused.told(&range(), 9);
    awake.told(&range(), 9);
    awake.left(&range(), false);
    pass(Duration::from_secs(1)).await;
    awake.lists(9);
    assert_eq!(of(&receptions), (2, Some(9), None));
    pass(PAUSE).await;
    awake.lists(9);
    assert_eq!(of(&receptions), (2, Some(7), Some(9)));
    // It has it, and takes it: they are different.
    paused.answered();
    paused.answered();
    pass(TAKEN).await;
    assert_eq!(of(&receptions), (2, Some(9), Some(9)));
}

#[tokio::test(start_paused = true)]
async fn nobody_is_told_to_look_when_nothing_happens() {
    let receptions = Receptions::default();
    let client = receptions.connect();
    client.watches(&range(), Some(7));
    pass(TAKEN * 4).await;
    let mut changes = receptions.changes();
    changes.mark_unchanged();
    for _ in 0..360 {
        pass(Duration::from_secs(10)).await;
        client.answered();
    }
    assert!(!changes.has_changed().unwrap());
    client.told(&range(), 8);
    pass(TAKEN * 4).await;
    assert!(changes.has_changed().unwrap());
}
