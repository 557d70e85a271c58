//! The answers to pings among what a client says.
//!
//! The server pings whoever has been silent for a while, and a client answers in order: it has received whatever was written
//! before the ping, down to its own program and not only to the system it runs on. HTTP/2 for Rust keeps the answers to
//! itself, so they are looked for in the frames: nine bytes of header, of which the first three are the length of the
//! payload, then the type and the flags (RFC 9113, sections 4.1 and 6.7).

/// How long the header of a frame is.
const HEADER: usize = 9;

/// The type of a frame that is a ping or the answer to one.
const PING: u8 = 6;

/// The flag of an answer.
const ACK: u8 = 1;

/// Follows the frames of a client.
#[derive(Debug)]
pub(super) struct Pongs {
    /// How many bytes come before the next header.
    skip: usize,
    header: [u8; HEADER],
    filled: usize,
}

impl Pongs {
    /// Of a client that begins with a preface of this many bytes.
    pub(super) const fn behind(preface: usize) -> Self {
        Self { skip: preface, header: [0; HEADER], filled: 0 }
    }

    /// Takes in what the client said next, and says whether the answer to a ping begins there.
    pub(super) fn are_in(&mut self, mut bytes: &[u8]) -> bool {
        let mut found = false;
        while !bytes.is_empty() {
            if self.skip > 0 {
                let skipped = self.skip.min(bytes.len());
                self.skip -= skipped;
                bytes = &bytes[skipped..];
                continue;
            }
            let taken = (HEADER - self.filled).min(bytes.len());
            self.header[self.filled..self.filled + taken].copy_from_slice(&bytes[..taken]);
            self.filled += taken;
            bytes = &bytes[taken..];
            if self.filled == HEADER {
                self.filled = 0;
                let [a, b, c, kind, flags, ..] = self.header;
                self.skip = usize::from(a) << 16 | usize::from(b) << 8 | usize::from(c);
                found |= kind == PING && flags & ACK != 0;
            }
        }
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(kind: u8, flags: u8, payload: &[u8]) -> Vec<u8> {
        let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let mut frame = length[1..].to_vec();
        frame.extend([kind, flags, 0, 0, 0, 0]);
        frame.extend(payload);
        frame
    }

    #[test]
    fn an_answer_is_found_however_the_bytes_come_and_nothing_else_is() {
        // What looks like an answer lies in the payload of another frame.
        let disguised = frame(PING, ACK, &[0; 8]);
        let others = [
            b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
            frame(4, 1, &[]),
            frame(0, 0, &disguised.repeat(40)),
            frame(PING, 0, &[7; 8]),
            frame(8, 0, &[0; 4]),
        ]
        .concat();
        for size in [1, 2, 9, 10, 17, 1_000] {
            let mut pongs = Pongs::behind(24);
            assert!(others.chunks(size).all(|chunk| !pongs.are_in(chunk)), "{size}");
            let answer = frame(PING, ACK, &[7; 8]);
            assert_eq!(answer.chunks(size).filter(|chunk| pongs.are_in(chunk)).count(), 1, "{size}");
            assert!(others[24..].chunks(size).all(|chunk| !pongs.are_in(chunk)), "{size}");
        }
    }
}
