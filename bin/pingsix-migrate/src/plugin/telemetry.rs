//! Plugins that count and log requests.

use serde_json::{Value, json};

use super::{Effects, Level};
use crate::report::{Reason, Report};
use crate::source::Fields;

pub(super) fn prometheus(mut config: Fields, level: Level, effects: &mut Effects, report: &mut Report) {
    config.drop(["prefer_name"], report, "Metrics have the names of routes.");
    let place = config.place.clone();
    config.finish(report);
    effects.telemetry.insert("metrics".to_owned(), json!({}));
    if level == Level::Gateway {
        report.exact(&place, "The plugin becomes telemetry.metrics of a PingsixProxy.");
    } else {
        let message = "The plugin becomes telemetry.metrics of a PingsixProxy, which counts all requests.";
        report.limited(&place, Reason::DifferentAnswer, message);
    }
}

pub(super) fn file_logger(mut config: Fields, level: Level, effects: &mut Effects, report: &mut Report) {
    let place = config.place.clone();
    config.drop(["path"], report, "The lines go to the log of the process.");
    let message = "Every request has a line, without bodies.";
    config.drop(
        [
            "include_req_body",
            "include_req_body_expr",
            "include_resp_body",
            "include_resp_body_expr",
            "match",
            "max_req_body_bytes",
            "max_resp_body_bytes",
        ],
        report,
        message,
    );
    let message = "The lines have the format of PingSIX, unless telemetry.accessLog.format is set.";
    config.drop(["log_format"], report, message);
    config.finish(report);
    effects.telemetry.insert("accessLog".to_owned(), Value::Object(serde_json::Map::new()));
    let message = if level == Level::Gateway {
        "The plugin becomes telemetry.accessLog of a PingsixProxy."
    } else {
        "The plugin becomes telemetry.accessLog of a PingsixProxy, which logs all requests."
    };
    report.limited(&place, Reason::DifferentAnswer, message);
}
