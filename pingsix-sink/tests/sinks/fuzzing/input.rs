//! Choices from arbitrary bytes.

#![allow(dead_code, reason = "each target uses a part of this file")]

/// Bytes that are consumed from the front; at their end every choice is the first one.
pub(crate) struct Input<'a>(pub(crate) &'a [u8]);

impl<'a> Input<'a> {
    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub(crate) fn byte(&mut self) -> u8 {
        self.0.split_off_first().copied().unwrap_or_default()
    }

    /// A number below `count`.
    pub(crate) fn below(&mut self, count: u8) -> u8 {
        self.byte() % count
    }

    /// As many bytes as the next byte says, or the rest.
    pub(crate) fn bytes(&mut self) -> &'a [u8] {
        let length = usize::from(self.byte()).min(self.0.len());
        let (bytes, rest) = self.0.split_at(length);
        self.0 = rest;
        bytes
    }
}
