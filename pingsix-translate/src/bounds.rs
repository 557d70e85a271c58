//! Bounds on certificates and server names, checked before documents are built.
//!
//! Within these bounds, the memory of a translation is a small multiple of the bytes of its objects, and each `ssls`
//! document is smaller than every target's limit: the Admin API has the smallest, 1 MiB for a body.

/// DER bytes of a certificate. TLS clients limit the handshake message that holds it: rustls to 64 KiB, OpenSSL to
/// 100 KiB.
pub(crate) const CERTIFICATE_BYTES: usize = 64 * 1024;

/// DER bytes of all certificates of a chain. The clients that take the longest chains are those written in Go, which
/// take 256 KiB.
pub(crate) const CHAIN_BYTES: usize = 256 * 1024;

/// DNS names of a certificate, of all certificates of a listener, and hosts of `spec.tls` of an Ingress. Gateway API
/// has 64 listeners in a Gateway and 64 certificateRefs in a listener, so the largest Gateway has as many references
/// as names are allowed here, and no author has to split an object.
pub(crate) const NAMES: usize = 64 * 64;

/// Bytes of the names in one `ssls` document.
pub(crate) const NAME_BYTES: usize = 256 * 1024;

/// CA certificates of one ConfigMap that client certificates are verified with. Servers name all authorities of a port in
/// one handshake message.
pub(crate) const AUTHORITIES: usize = 64;

/// DER bytes of the CA certificates of one ConfigMap.
pub(crate) const AUTHORITY_BYTES: usize = 128 * 1024;
