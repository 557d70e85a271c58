//! The syntax of patterns, checked without inserting them, and the form in which hosts are stored.

/// The parts of a well-formed pattern.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PatternShape {
    /// The number of `{name}` segments.
    pub params: usize,
    /// Whether it ends in `{*name}`.
    pub catch_all: bool,
    /// Whether it contains `{{` or `}}`, which stand for literal braces.
    pub escapes: bool,
}

/// The reason why a pattern is invalid by itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum PatternError {
    /// A brace has no partner, or there is no valid name between two.
    #[error("its braces are not balanced or hold no valid name")]
    Name,
    /// Text follows a parameter within its segment.
    #[error("text follows a parameter within a segment")]
    Suffix,
    /// A `{*name}` is not at the end.
    #[error("its catch-all is not at the end")]
    CatchAllInside,
    /// There are more than 25 parameters, on which matchit panics.
    #[error("it has more than 25 parameters, at which PingSIX's worker dies")]
    TooManyParams,
}

/// The largest number of `{name}` segments in matchit, whose `normalize_params` names them with letters.
const MAX_PARAMS: usize = 25;

/// Reads a path pattern, or a host pattern as [`reverse_host`] gives it, by the rules of matchit 0.8.4.
///
/// # Errors
///
/// [`PatternError`] if matchit would refuse the pattern or panic on it, in an empty router too.
pub(crate) fn inspect_pattern(pattern: &str) -> Result<PatternShape, PatternError> {
    let mut shape = PatternShape { params: 0, catch_all: false, escapes: false };
    if !pattern.bytes().any(|byte| matches!(byte, b'{' | b'}')) {
        return Ok(shape);
    }
    let symbols = unescape(pattern.as_bytes());
    shape.escapes = symbols.iter().any(|symbol| symbol.escaped);
    let mut at = 0;
    while let Some(wildcard) = next_wildcard(&symbols, at)? {
        if wildcard.catch_all {
            if wildcard.end != symbols.len() {
                // The rest is read first, because matchit reports its errors first.
                while next_wildcard(&symbols, at)?.is_some_and(|next| advance(&mut at, &next)) {}
                return Err(PatternError::CatchAllInside);
            }
            shape.catch_all = true;
        } else {
            shape.params += 1;
            if shape.params > MAX_PARAMS {
                return Err(PatternError::TooManyParams);
            }
        }
        at = wildcard.end;
    }
    Ok(shape)
}

/// Whether PingSIX can insert a path pattern into an empty router.
pub fn is_path_pattern(pattern: &str) -> bool {
    pattern.starts_with('/') && inspect_pattern(pattern).is_ok()
}

/// Whether PingSIX can insert a host pattern into an empty router.
pub fn is_host_pattern(pattern: &str) -> bool {
    !pattern.is_empty() && inspect_pattern(&reverse_host(pattern)).is_ok()
}

fn advance(at: &mut usize, wildcard: &Wildcard) -> bool {
    *at = wildcard.end;
    true
}

/// A byte of a pattern after `{{` and `}}` have become single bytes.
#[derive(Clone, Copy)]
struct Symbol {
    byte: u8,
    escaped: bool,
}

fn unescape(pattern: &[u8]) -> Vec<Symbol> {
    let mut symbols = Vec::with_capacity(pattern.len());
    let mut rest = pattern;
    while let [byte, tail @ ..] = rest {
        let escaped = matches!(byte, b'{' | b'}') && tail.first() == Some(byte);
        symbols.push(Symbol { byte: *byte, escaped });
        rest = if escaped { tail.get(1..).unwrap_or_default() } else { tail };
    }
    symbols
}

struct Wildcard {
    end: usize,
    catch_all: bool,
}

fn next_wildcard(symbols: &[Symbol], from: usize) -> Result<Option<Wildcard>, PatternError> {
    let is = |at: usize, byte: u8| symbols.get(at).is_some_and(|symbol| symbol.byte == byte);
    for (start, symbol) in symbols.iter().enumerate().skip(from) {
        if symbol.byte == b'}' && !symbol.escaped {
            return Err(PatternError::Name);
        }
        if symbol.byte != b'{' || symbol.escaped {
            continue;
        }
        if is(start + 1, b'}') {
            return Err(PatternError::Name);
        }
        // The first byte of the name may be `*`, so matchit checks the name from its second byte on.
        for (end, symbol) in symbols.iter().enumerate().skip(start + 2) {
            match symbol.byte {
                b'}' if symbol.escaped => {}
                b'}' => {
                    if is(end - 1, b'*') {
                        return Err(PatternError::Name);
                    }
                    if symbols.get(end + 1).is_some_and(|next| next.byte != b'/') {
                        return Err(PatternError::Suffix);
                    }
                    return Ok(Some(Wildcard { end: end + 1, catch_all: is(start + 1, b'*') }));
                }
                b'*' | b'/' => return Err(PatternError::Name),
                _ => {}
            }
        }
        return Err(PatternError::Name);
    }
    Ok(None)
}

/// The form in which PingSIX stores a host pattern: reversed character by character, ASCII letters lowered, a
/// leading `*` turned into a catch-all (`src/proxy/route.rs`). `*.example.com` becomes
/// `moc.elpmaxe.{*subdomain}`.
pub(crate) fn reverse_host(host: &str) -> String {
    match host.strip_prefix('*') {
        Some(suffix) => format!("{}{{*subdomain}}", reverse(suffix)),
        None => reverse(host),
    }
}

/// The form in which PingSIX looks up a request's host.
pub(super) fn reverse(host: &str) -> String {
    host.chars().rev().map(|letter| letter.to_ascii_lowercase()).collect()
}
