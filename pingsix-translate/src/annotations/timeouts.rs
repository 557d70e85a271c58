//! Timeouts and retries of connections to backends.

use super::{Concern, IngressAnnotations, Support, Unless, Values, lacking, tunes};
use crate::crd::{BackendRetry, BackendTimeout};

/// PingSIX's longest timeout in seconds (`src/config/mod.rs`).
const MAX_SECONDS: u32 = 86_400;

pub(super) const NGINX: Concern = Concern {
    annotations: &[
        tunes("proxy-connect-timeout", Support::Exact),
        tunes("proxy-read-timeout", Support::Exact),
        tunes("proxy-send-timeout", Support::Exact),
        lacking(
            "proxy-next-upstream",
            Unless::Values(&["", "error", "error timeout"]),
            "PingSIX tries another endpoint only if a connection fails.",
        ),
        tunes("proxy-next-upstream-timeout", Support::Exact),
        tunes("proxy-next-upstream-tries", Support::Exact),
    ],
    read,
};

pub(super) const APISIX: Concern = Concern {
    annotations: &[
        tunes("upstream-connect-timeout", Support::Exact),
        tunes("upstream-read-timeout", Support::Exact),
        tunes("upstream-send-timeout", Support::Exact),
        tunes(
            "upstream-retries",
            Support::Limited("PingSIX tries another endpoint only if a connection fails."),
        ),
    ],
    read: read_apisix,
};

fn read_apisix(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let mut seconds = |name| values.seconds(name, MAX_SECONDS).map(|seconds| format!("{seconds}s"));
    let timeout = BackendTimeout {
        connect: seconds("upstream-connect-timeout"),
        send: seconds("upstream-send-timeout"),
        read: seconds("upstream-read-timeout"),
    };
    if timeout != BackendTimeout::default() {
        read.backend_traffic.timeout = Some(timeout);
    }
    if let Some(retries) = values.number("upstream-retries", 0..=16) {
        values.limit("upstream-retries");
        let (num_retries, status_codes) = (Some(retries), Vec::new());
        read.backend_traffic.retry = Some(BackendRetry { num_retries, timeout: None, status_codes });
    }
}

fn read(values: &mut Values<'_>, read: &mut IngressAnnotations) {
    let timeout = BackendTimeout {
        connect: time("proxy-connect-timeout", values),
        send: time("proxy-send-timeout", values),
        read: time("proxy-read-timeout", values),
    };
    // Zero is no limit in time.
    let retry_timeout = values
        .number("proxy-next-upstream-timeout", 0..=MAX_SECONDS)
        .filter(|seconds| *seconds > 0)
        .map(|seconds| format!("{seconds}s"));
    // Zero is as many tries as there are endpoints, and the first try is no retry.
    let tries = values.number("proxy-next-upstream-tries", 0..=17);
    let num_retries = tries.map(|tries| if tries == 0 { 16 } else { tries - 1 });
    if timeout != BackendTimeout::default() {
        read.backend_traffic.timeout = Some(timeout);
    }
    if num_retries.is_some() || retry_timeout.is_some() {
        let status_codes = Vec::new();
        read.backend_traffic.retry = Some(BackendRetry { num_retries, timeout: retry_timeout, status_codes });
    }
}

/// A number of seconds. A longer time than PingSIX has becomes the longest one.
fn time(name: &str, values: &mut Values<'_>) -> Option<String> {
    let seconds = values.number(name, 1..=u32::MAX)?;
    if seconds > MAX_SECONDS {
        values.differ(name, format!("PingSIX waits for {MAX_SECONDS} seconds at most."));
    }
    Some(format!("{}s", seconds.min(MAX_SECONDS)))
}
