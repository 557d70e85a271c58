//! `request-id`, `prometheus` and `file-logger`.

use super::Plugin;
use crate::pingsix::plugin::{FileLogger, Prometheus, RangeId, RequestId};

/// The largest number of characters of a random id. Servers accept about 8 KiB of headers.
const MAX_ID_CHARS: u32 = 4096;

/// The largest number of values of a label, and the largest length of a value in bytes. PingSIX stores every value
/// until its end.
const MAX_LABEL_VALUES: usize = 10_000;
const MAX_LABEL_BYTES: usize = 4096;

pub(super) fn check_request_id(plugin: &mut Plugin<'_>) {
    let Some(request_id) = plugin.decode::<RequestId>() else { return };
    let RangeId { char_set, length } = &request_id.range_id;
    match request_id.algorithm.as_str() {
        "range_id" => {
            if *length == 0 && !request_id.header_name.eq_ignore_ascii_case(RequestId::FORWARDED_FOR) {
                plugin.warn("range_id", "Ids of length 0, the length without this object, are empty.");
            }
            if *length > MAX_ID_CHARS {
                let message = format!("Servers refuse an id of more than {MAX_ID_CHARS} characters.");
                plugin.harm("range_id.length", message);
            }
            plugin
                .check_header_value(char_set, "range_id.char_set", || "An id of these characters".to_owned());
        }
        "uuid" => {}
        _ => plugin.refuse("algorithm", "The algorithm is `uuid` or `range_id`."),
    }
    plugin.check_header_name(&request_id.header_name, "header_name");
}

pub(super) fn check_prometheus(plugin: &mut Plugin<'_>) {
    if plugin.config.is_null() {
        return;
    }
    let Some(prometheus) = plugin.decode::<Prometheus>() else { return };
    let Prometheus { max_label_length, max_unique_paths, max_unique_hosts, .. } = prometheus;
    for (field, value, most) in [
        ("max_label_length", max_label_length, MAX_LABEL_BYTES),
        ("max_unique_paths", max_unique_paths, MAX_LABEL_VALUES),
        ("max_unique_hosts", max_unique_hosts, MAX_LABEL_VALUES),
    ] {
        if value > most {
            let message = format!("Clients choose labels, and above {most} they can use up the memory.");
            plugin.harm(field, message);
        }
    }
    // `max_unique_paths: 0` deliberately means one label, so only the side effect of a short length causes a warning.
    if max_label_length < 4 {
        plugin.warn("max_label_length", "All paths get the same label.");
    }
}

pub(super) fn check_file_logger(plugin: &mut Plugin<'_>) {
    let Some(logger) = plugin.decode::<FileLogger>() else { return };
    for name in FileLogger::variables(&logger.log_format) {
        if !name.starts_with("var_") && !FileLogger::VARIABLES.contains(&name) {
            plugin.warn("log_format", format!("\"${name}\" is no variable of PingSIX, so it is empty."));
        }
    }
}
