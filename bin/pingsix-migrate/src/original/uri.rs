//! Paths of requests, as nginx decodes and encodes them. APISIX is nginx, too.

/// The decoded path of a request, without repeated slashes and dot segments. nginx compares locations with it.
///
/// `None` for a path that nginx answers with 400.
pub(super) fn normalised(raw: &str) -> Option<String> {
    if !raw.starts_with('/') {
        return None;
    }
    let mut decoded = Vec::with_capacity(raw.len());
    let mut bytes = raw.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            decoded.push(byte);
            continue;
        }
        let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
        let (high, low) = (digit(bytes.next())?, digit(bytes.next())?);
        match u8::try_from(high * 16 + low).ok()? {
            0 => return None,
            byte => decoded.push(byte),
        }
    }
    let decoded = String::from_utf8_lossy(&decoded).into_owned();
    let mut elements: Vec<&str> = Vec::new();
    let mut is_open = true;
    for element in decoded.split('/').skip(1) {
        is_open = matches!(element, "" | "." | "..");
        match element {
            "" | "." => {}
            ".." => {
                elements.pop()?;
            }
            element => elements.push(element),
        }
    }
    let slash = if is_open && !elements.is_empty() { "/" } else { "" };
    Some(format!("/{}{slash}", elements.join("/")))
}

/// The path that a backend gets after a rewrite.
pub(super) fn escaped(path: &str) -> String {
    let mut escaped = String::with_capacity(path.len());
    for byte in path.bytes() {
        match byte {
            b'%' | b'?' | b'#' | b' ' | 0..=0x1f | 0x7f.. => {
                escaped.push('%');
                for digit in [byte >> 4, byte & 15] {
                    escaped
                        .extend(char::from_digit(digit.into(), 16).map(|digit| digit.to_ascii_uppercase()));
                }
            }
            byte => escaped.push(char::from(byte)),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::{escaped, normalised};

    #[test]
    fn paths_are_compared_without_encodings() {
        for (raw, expected) in [
            ("/", Some("/")),
            ("/a//b/", Some("/a/b/")),
            ("/a/./b/../c", Some("/a/c")),
            ("/a/%2e%2E/c", Some("/c")),
            ("/%61%2fb", Some("/a/b")),
            ("/a/..", Some("/")),
            ("/a/b/..", Some("/a/")),
            ("/..", None),
            ("/%00", None),
            ("/%zz", None),
        ] {
            assert_eq!(normalised(raw).as_deref(), expected, "{raw}");
        }
        assert_eq!(escaped("/a b%"), "/a%20b%25");
    }
}
