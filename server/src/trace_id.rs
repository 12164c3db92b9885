//! The content address of a trace.

use ingest::trace::TimeUnit;
use sha2::{Digest, Sha256};

/// Domain separator, so trace addresses differ from hashes of the same bytes for other purposes.
const DOMAIN: &[u8] = b"planscope trace\0";

/// Incremental hash of a trace.
#[derive(Debug)]
pub(crate) struct TraceHash(Sha256);

impl TraceHash {
    /// Starts a hash with the time unit and the optional pipeline stage. The same bytes with a
    /// different unit or stage are a different trace.
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

    pub(crate) fn add(&mut self, bytes: &[u8]) {
        self.0.update(bytes);
    }

    /// Returns the SHA-256 in lower-case base32 without padding: 52 characters.
    pub(crate) fn id(self) -> String {
        data_encoding::BASE32_NOPAD.encode(&self.0.finalize()).to_ascii_lowercase()
    }
}
