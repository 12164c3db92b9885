//! Previews and tokenizers in memory, with limited lifetime and number.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ingest::dataset::Tokenizer;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest, Sha256};

use super::Prepared;

/// Lifetime of a preview.
pub(crate) const PREVIEW_LIFETIME: SignedDuration = SignedDuration::from_mins(15);
/// Maximum number of previews.
const MAX_PREVIEWS: usize = 256;
/// Maximum memory for previews in bytes.
const MAX_PREVIEW_BYTES: usize = 512 << 20;
/// Maximum number of tokenizers. A tokenizer uses up to several hundred megabytes.
const MAX_TOKENIZERS: usize = 4;

#[derive(Debug)]
struct StoredPreview {
    id: String,
    expires_at: Timestamp,
    prepared: Arc<Prepared>,
}

/// Previews and tokenizers in memory, oldest first. The oldest entries are evicted when a limit is
/// reached.
#[derive(Debug, Default)]
pub(crate) struct Previews {
    previews: Mutex<Vec<StoredPreview>>,
    tokenizers: Mutex<Vec<(String, Arc<Tokenizer>)>>,
}

impl Previews {
    /// Adds a preview. Returns identifier, expiry time and the preview.
    pub(crate) fn hold(&self, prepared: Prepared, now: Timestamp) -> (String, Timestamp, Arc<Prepared>) {
        let prepared = Arc::new(prepared);
        let id = crate::token::run_id();
        let expires_at = now.checked_add(PREVIEW_LIFETIME).unwrap_or(Timestamp::MAX);
        let mut previews = lock(&self.previews);
        previews.retain(|preview| preview.expires_at > now);
        previews.push(StoredPreview { id: id.clone(), expires_at, prepared: Arc::clone(&prepared) });
        let mut bytes: usize = previews.iter().map(|preview| preview.prepared.bytes()).sum();
        // The new preview is never evicted, regardless of size.
        while previews.len() > 1 && (previews.len() > MAX_PREVIEWS || bytes > MAX_PREVIEW_BYTES) {
            bytes -= previews.remove(0).prepared.bytes();
        }
        (id, expires_at, prepared)
    }

    /// Returns a preview, or `None` if it is unknown, expired or evicted.
    pub(crate) fn find(&self, id: &str, now: Timestamp) -> Option<Arc<Prepared>> {
        let mut previews = lock(&self.previews);
        previews.retain(|preview| preview.expires_at > now);
        previews.iter().find(|preview| preview.id == id).map(|preview| Arc::clone(&preview.prepared))
    }

    /// Removes previews that have been stored.
    pub(crate) fn remove(&self, ids: &[String]) {
        lock(&self.previews).retain(|preview| !ids.contains(&preview.id));
    }

    pub(crate) fn remove_expired(&self, now: Timestamp) {
        lock(&self.previews).retain(|preview| preview.expires_at > now);
    }

    /// Adds a tokenizer and returns the hash of the file as identifier.
    pub(crate) fn hold_tokenizer(&self, file: &[u8], tokenizer: Arc<Tokenizer>) -> String {
        let id = data_encoding::BASE32_NOPAD.encode(&Sha256::digest(file)).to_ascii_lowercase();
        let mut tokenizers = lock(&self.tokenizers);
        tokenizers.retain(|(stored_id, _)| *stored_id != id);
        tokenizers.push((id.clone(), tokenizer));
        if tokenizers.len() > MAX_TOKENIZERS {
            tokenizers.remove(0);
        }
        id
    }

    /// Returns a tokenizer, or `None` if it is unknown or evicted. The tokenizer becomes the newest
    /// entry.
    pub(crate) fn tokenizer(&self, id: &str) -> Option<Arc<Tokenizer>> {
        let mut tokenizers = lock(&self.tokenizers);
        let index = tokenizers.iter().position(|(stored_id, _)| stored_id == id)?;
        let used = tokenizers.remove(index);
        let tokenizer = Arc::clone(&used.1);
        tokenizers.push(used);
        Some(tokenizer)
    }
}

/// A panic cannot leave the lists inconsistent: each update is a single step.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use ingest::dataset::{Options, import};

    use super::*;

    fn prepared(file: &str) -> Prepared {
        let imported = import(file.as_bytes(), &Options::default()).unwrap();
        Prepared::new("a".to_owned(), vec!["a".to_owned()], imported).unwrap()
    }

    #[test]
    fn previews_are_removed_when_their_time_is_over_or_there_are_too_many() {
        let previews = Previews::default();
        let now = Timestamp::UNIX_EPOCH;
        let (first, expires_at, _) = previews.hold(prepared("5\n7\n"), now);
        assert_eq!(expires_at, now + PREVIEW_LIFETIME);
        assert!(previews.find(&first, expires_at - SignedDuration::from_secs(1)).is_some());
        assert!(previews.find(&first, expires_at).is_none());

        let ids: Vec<String> = (0..=MAX_PREVIEWS).map(|_| previews.hold(prepared("5\n7\n"), now).0).collect();
        assert!(previews.find(&ids[0], now).is_none() && previews.find(&ids[1], now).is_some());
        previews.remove(&ids[1..2]);
        assert!(previews.find(&ids[1], now).is_none());
    }
}
