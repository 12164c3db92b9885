//! The address of a trace.

use ingest::trace::TimeUnit;
use sha2::{Digest, Sha256};

/// Separates addresses of traces from hashes of the same bytes made for other purposes.
const DOMAIN: &[u8] = b"planscope trace\0";

/// Hashes the bytes of a trace as they come.
#[derive(Debug)]
pub(crate) struct TraceHash(Sha256);

impl TraceHash {
    /// Of a file whose times are in a unit: the same bytes read otherwise are another trace.
    pub(crate) fn new(unit: TimeUnit) -> Self {
        let unit = match unit {
            TimeUnit::Microseconds => b'u',
            TimeUnit::Milliseconds => b'm',
            TimeUnit::Nanoseconds => b'n',
        };
        Self(Sha256::new().chain_update(DOMAIN).chain_update([unit]))
    }

    /// Takes further bytes.
    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// SHA-256 over all of them, in lower-case base32 without padding: 52 characters.
    pub(crate) fn id(self) -> String {
        data_encoding::BASE32_NOPAD.encode(&self.0.finalize()).to_ascii_lowercase()
    }
}
