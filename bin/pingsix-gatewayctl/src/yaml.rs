//! YAML out.

use pingsix_translate::manifest::documents;
use serde_json::Value;

/// Encodes a value as one document, without a line of dashes.
pub(crate) fn encode(value: &Value) -> anyhow::Result<String> {
    // Long lines stay as they are, because certificates and patterns are never wrapped.
    let options = serde_saphyr::ser_options! { folded_wrap_chars: usize::MAX };
    Ok(serde_saphyr::to_string_with_options(value, options)?)
}

/// The value of a text with one document.
pub(crate) fn decode(text: &str) -> Option<Value> {
    match documents(text).as_slice() {
        [document] => document.decode().ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_written_value_is_read_back() {
        let value = serde_json::json!({
            "uris": ["/", "/{*p}", "*.example.com", "yes", "1e3", "0x1f", "null", "~", "a: b", "# no", " x ", ""],
            "pem": "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n",
            "long": "x".repeat(300), "words": "word ".repeat(100), "multi": "a\n\n b\n\n\n", "empty": {}, "list": [],
            "number": 4_294_967_296_u64, "negative": -1, "float": 1.5, "truth": true, "null": null,
        });
        assert_eq!(decode(&encode(&value).unwrap()), Some(value));
    }
}
