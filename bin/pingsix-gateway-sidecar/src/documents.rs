//! The documents of the stream role.

/// The documents below a stream prefix, by key relative to the prefix, such as `stream_routes/ID`.
///
/// [`stream-documents.md`](https://github.com/pingsix/pingsix-gateway-api/blob/main/docs/reference/stream-documents.md)
/// describes keys and values. `Debug` shows no values, because some are private keys.
pub use pingsix_sink::etcd::KeyValues as Documents;
