//! The fuzz targets with random bytes and with nearly valid frames.

mod frames;

mod input;

mod plans;

use pingsix_test_programs::proto::etcdserverpb::watch_request::RequestUnion;
use pingsix_test_programs::proto::etcdserverpb::{
    RangeRequest, RequestOp, TxnRequest, WatchCancelRequest, WatchCreateRequest, WatchRequest, request_op,
};
use proptest::prelude::*;
use prost::Message as _;

fn key() -> impl Strategy<Value = bytes::Bytes> {
    let keys =
        ["", "\0", "/p/", "/p/web", "/p/web/", "/p/web/routes/a", "/p/web/routes/c", "/p/web0", "health"];
    prop::sample::select(keys.to_vec()).prop_map(|key| bytes::Bytes::from_static(key.as_bytes()))
}

fn number() -> impl Strategy<Value = i64> {
    prop_oneof![3 => Just(0), 3 => -2i64..5, 1 => any::<i64>()]
}

fn range_request() -> impl Strategy<Value = RangeRequest> {
    (key(), key(), number(), number(), number(), any::<[bool; 2]>(), -1i32..6, -1i32..6).prop_map(
        |(key, range_end, limit, revision, min_mod_revision, flags, sort_order, sort_target)| RangeRequest {
            key,
            range_end,
            limit,
            revision,
            min_mod_revision,
            keys_only: flags[0],
            count_only: flags[1],
            sort_order,
            sort_target,
            ..RangeRequest::default()
        },
    )
}

fn watch_request() -> impl Strategy<Value = WatchRequest> {
    let create =
        (key(), key(), number(), number(), any::<[bool; 3]>(), prop::collection::vec(-1i32..4, 0..3));
    let union = prop_oneof![
        5 => create.prop_map(|(key, range_end, start_revision, watch_id, flags, filters)| {
            RequestUnion::CreateRequest(WatchCreateRequest {
                key,
                range_end,
                start_revision,
                watch_id,
                prev_kv: flags[0],
                fragment: flags[1],
                progress_notify: flags[2],
                filters,
            })
        }),
        1 => number().prop_map(|watch_id| RequestUnion::CancelRequest(WatchCancelRequest { watch_id })),
    ];
    prop::option::of(union).prop_map(|request_union| WatchRequest { request_union })
}

/// One action of a target: its number, and the frame it sends.
fn action() -> impl Strategy<Value = Vec<u8>> {
    let with_length = |kind: u8, frame: Vec<u8>| {
        let length = u8::try_from(frame.len()).unwrap_or(u8::MAX);
        [&[kind, length][..], &frame].concat()
    };
    let txn = prop::collection::vec(range_request(), 0..3).prop_map(|ranges| TxnRequest {
        success: ranges
            .into_iter()
            .map(|range| RequestOp { request: Some(request_op::Request::RequestRange(range)) })
            .collect(),
        ..TxnRequest::default()
    });
    prop_oneof![
        4 => range_request().prop_map(move |request| with_length(0, request.encode_to_vec())),
        2 => txn.prop_map(move |request| with_length(1, request.encode_to_vec())),
        3 => prop::collection::vec(watch_request(), 1..4).prop_map(move |requests| {
            let count = u8::try_from(requests.len() - 1).unwrap_or_default();
            let frames: Vec<u8> =
                requests.iter().flat_map(|request| with_length(0, request.encode_to_vec())[1..].to_vec()).collect();
            [&[2, count][..], &frames].concat()
        }),
        2 => Just(vec![3]),
        2 => prop::collection::vec(any::<u8>(), 1..40),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_server_stands_any_frames(actions in prop::collection::vec(prop::collection::vec(action(), 1..6), 1..6)) {
        let mut target = frames::Target::start();
        for actions in actions {
            let bytes = actions.concat();
            let errors = target.run(&bytes);
            prop_assert!(errors.is_empty(), "{:#?} after {:?}", errors, bytes);
        }
    }
}

proptest! {
    #[test]
    fn a_plan_is_valid_at_every_step(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        let errors = plans::run(&bytes);
        prop_assert!(errors.is_empty(), "{:#?}", errors);
    }
}
