//! The server name of a TLS connection, read from its `ClientHello`.
//!
//! A `ClientHello` (RFC 8446, section 4.1.2) may be split over TLS records at any byte, and these over segments of TCP.
//! [`Reader`] takes the bytes in any portions, joins the records, and keeps the bytes as they came for the server that
//! terminates TLS. Its state moves forward only, so the work is linear in the bytes.

use std::net::IpAddr;

/// The most bytes of a `ClientHello` with its record headers.
pub(super) const MAX_HELLO_BYTES: usize = 16 * 1024;

/// The content type of handshake records, and the type of the message.
const HANDSHAKE: u8 = 22;
const CLIENT_HELLO: u8 = 1;
const RECORD_HEADER_BYTES: usize = 5;
const MESSAGE_HEADER_BYTES: usize = 4;
/// The extension `server_name` (RFC 6066), and its type of names.
const SERVER_NAME: u16 = 0;
const HOST_NAME: u8 = 0;

/// Reason why bytes are no `ClientHello` that can be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClientHelloError {
    /// They are no `ClientHello`.
    NotClientHello,
    /// The `ClientHello` is longer than [`MAX_HELLO_BYTES`].
    TooLarge,
}

/// A complete `ClientHello`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Hello {
    /// The server name in lower case. `None` without one, or if it is an IP address, which rustls ignores too.
    pub(super) name: Option<String>,
}

/// The bytes of a connection up to the end of its `ClientHello`.
#[derive(Debug, Default)]
pub(super) struct Reader {
    raw: Vec<u8>,
    /// The bytes of `raw` that are read.
    read: usize,
    /// The bytes left of the current record.
    record: usize,
    /// The content of the records.
    message: Vec<u8>,
}

impl Reader {
    /// Takes further bytes; `None` before the `ClientHello` is complete.
    pub(super) fn push(&mut self, bytes: &[u8]) -> Result<Option<Hello>, ClientHelloError> {
        self.raw.extend_from_slice(bytes);
        let end = self.raw.len().min(MAX_HELLO_BYTES);
        loop {
            let rest = self.raw.get(self.read..end).unwrap_or_default();
            if self.record == 0 {
                let Some(length) = record_length(rest)? else { break };
                self.record = length;
                self.read += RECORD_HEADER_BYTES;
            } else if rest.is_empty() {
                break;
            } else {
                let taken = rest.len().min(self.record);
                self.message.extend_from_slice(&rest[..taken]);
                self.record -= taken;
                self.read += taken;
            }
            if let Some(length) = message_length(&self.message)?
                && let Some(body) = self.message.get(MESSAGE_HEADER_BYTES..MESSAGE_HEADER_BYTES + length)
            {
                return server_name(body).map(|name| Some(Hello { name }));
            }
        }
        if end < MAX_HELLO_BYTES { Ok(None) } else { Err(ClientHelloError::TooLarge) }
    }

    /// The bytes as they came, with those after the `ClientHello`.
    pub(super) fn into_bytes(self) -> Vec<u8> {
        self.raw
    }
}

/// The length of the record that begins here; `None` if the header is incomplete.
fn record_length(bytes: &[u8]) -> Result<Option<usize>, ClientHelloError> {
    // The first bytes are judged at once, so garbage is refused before the deadline.
    if bytes.first().is_some_and(|kind| *kind != HANDSHAKE) || bytes.get(1).is_some_and(|major| *major != 3) {
        return Err(ClientHelloError::NotClientHello);
    }
    let Some([_, _, _, high, low]) = bytes.first_chunk::<RECORD_HEADER_BYTES>() else { return Ok(None) };
    match usize::from(u16::from_be_bytes([*high, *low])) {
        0 => Err(ClientHelloError::NotClientHello),
        length if length > 1 << 14 => Err(ClientHelloError::NotClientHello),
        length => Ok(Some(length)),
    }
}

/// The length of the body of the message; `None` if its header is incomplete.
fn message_length(message: &[u8]) -> Result<Option<usize>, ClientHelloError> {
    if message.first().is_some_and(|kind| *kind != CLIENT_HELLO) {
        return Err(ClientHelloError::NotClientHello);
    }
    let Some([_, high, middle, low]) = message.first_chunk::<MESSAGE_HEADER_BYTES>() else { return Ok(None) };
    match usize::try_from(u32::from_be_bytes([0, *high, *middle, *low])) {
        Ok(length) if length <= MAX_HELLO_BYTES => Ok(Some(length)),
        _ => Err(ClientHelloError::TooLarge),
    }
}

/// The server name of the body of a `ClientHello`.
fn server_name(body: &[u8]) -> Result<Option<String>, ClientHelloError> {
    let Some(name) = find_server_name(body).ok_or(ClientHelloError::NotClientHello)? else { return Ok(None) };
    // A DNS name in ASCII (RFC 6066).
    match std::str::from_utf8(name) {
        Ok(name) if name.parse::<IpAddr>().is_ok() => Ok(None),
        Ok(name) if !name.is_empty() && name.is_ascii() => Ok(Some(name.to_ascii_lowercase())),
        _ => Err(ClientHelloError::NotClientHello),
    }
}

/// `None` if the body is malformed, `Some(None)` if it has no server name.
#[expect(clippy::option_option, reason = "the outer one is for `?`")]
fn find_server_name(body: &[u8]) -> Option<Option<&[u8]>> {
    let mut body = Cursor(body);
    body.take(2 + 32)?; // version, random
    let session = body.byte()?;
    body.take(session.into())?;
    let suites = body.short()?;
    body.take(suites.into())?;
    let compressions = body.byte()?;
    body.take(compressions.into())?;
    if body.0.is_empty() {
        return Some(None);
    }
    let mut extensions = body.list()?;
    if !body.0.is_empty() {
        return None;
    }
    let mut found = None;
    while !extensions.0.is_empty() {
        let kind = extensions.short()?;
        let mut content = extensions.list()?;
        if kind == SERVER_NAME {
            let mut names = content.list()?;
            let (name_kind, name) = (names.byte()?, names.list()?);
            // One name of the only type there is, and once: two readers must not take different ones.
            let alone = content.0.is_empty() && names.0.is_empty() && name_kind == HOST_NAME;
            if !alone || found.replace(name.0).is_some() {
                return None;
            }
        }
    }
    Some(found)
}

/// Bytes that are taken from the front.
struct Cursor<'a>(&'a [u8]);

impl<'a> Cursor<'a> {
    fn take(&mut self, length: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(length)?;
        self.0 = rest;
        Some(taken)
    }

    fn byte(&mut self) -> Option<u8> {
        self.take(1)?.first().copied()
    }

    fn short(&mut self) -> Option<u16> {
        self.take(2)?.first_chunk().map(|bytes| u16::from_be_bytes(*bytes))
    }

    /// Bytes with their length before them.
    fn list(&mut self) -> Option<Self> {
        let length = self.short()?;
        self.take(length.into()).map(Self)
    }
}

#[cfg(test)]
mod tests;
