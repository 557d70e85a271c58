//! Other spellings of a protected path, as `docs/how-to/protect-a-route.md` lists them.

/// Whether a requested path is another spelling of a path.
pub(crate) fn is_other(path: &str, requested: &str) -> bool {
    let path = path.strip_suffix('/').unwrap_or(path);
    if path.contains("//") {
        return false;
    }
    path.match_indices('/').any(|(slash, _)| of_element(path, slash + 1, requested))
}

fn of_element(path: &str, start: usize, requested: &str) -> bool {
    let (directory, rest) = path.split_at(start);
    let element = rest.split('/').next().unwrap();
    let is_last = element == rest;
    // Whether the beginning alone is another spelling, too.
    let mut found: Vec<(String, bool)> = Vec::new();
    for begin in ["/", ";", "\\", "%2e", "%2E", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B"] {
        found.push((format!("{directory}{begin}"), false));
    }
    for dots in [".", ".."] {
        let ends = ["/", ";", "\\", "%"].iter();
        found.extend(ends.map(|end| (format!("{directory}{dots}{end}"), false)));
    }
    for end in [";", "%2f", "%2F", "%5c", "%5C", "%3b", "%3B", "%00", "\\"] {
        found.push((format!("{directory}{element}{end}"), is_last));
    }
    for (at, letter) in element.char_indices() {
        for code in [format!("%{:02x}", letter as u32), format!("%{:02X}", letter as u32)] {
            let is_end = is_last && at + 1 == element.len();
            found.push((format!("{directory}{}{code}", &element[..at]), is_end));
        }
    }
    found.iter().any(|(text, is_whole)| match requested.strip_prefix(text.as_str()) {
        Some("") => *is_whole,
        rest => rest.is_some(),
    })
}
