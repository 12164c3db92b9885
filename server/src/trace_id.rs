//! The address of a trace.

use ingest::trace::TimeUnit;
use sha2::{Digest, Sha256};

/// Separates addresses of traces from hashes of the same bytes made for other purposes.
const DOMAIN: &[u8] = b"planscope trace\0";

/// Hashes the bytes of a trace as they come.
#[derive(Debug)]
pub(crate) struct TraceHash(Sha256);

impl TraceHash {
    /// Starts the hash of a file whose times are in a unit and whose actions are of a stage, where one is given: the same bytes
    /// with another unit or stage are another trace.
    pub(crate) fn new(unit: TimeUnit, stage: Option<u32>) -> Self {
        let unit = match unit {
            TimeUnit::Microseconds => b'u',
            TimeUnit::Milliseconds => b'm',
            TimeUnit::Nanoseconds => b'n',
        };
        let hash = Sha256::new().chain_update(DOMAIN).chain_update([unit]);
        Self(match stage {
            Some(stage) => hash.chain_update(b"stage\0").chain_update(stage.to_le_bytes()),
            None => hash,
        })
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
