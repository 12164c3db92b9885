//! Actors that were looked up recently.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use crate::actor::Actor;

/// Lifetime of cached lookups. A token revoked on the command line remains valid up to this time.
pub(super) const BELIEVED: Duration = Duration::from_secs(5);
/// Maximum number of cached actors.
const MAX_ENTRIES: usize = 1024;

/// Cache of recent lookups: hash of the credential to actor and lookup time.
#[derive(Debug, Default)]
pub(super) struct Known(Mutex<BTreeMap<[u8; 32], (Actor, Duration)>>);

impl Known {
    pub(super) fn get(&self, hash: &[u8; 32], now: Duration) -> Option<Actor> {
        let known = self.locked();
        let (actor, found_at) = known.get(hash)?;
        (now.saturating_sub(*found_at) < BELIEVED).then(|| actor.clone())
    }

    pub(super) fn put(&self, hash: [u8; 32], actor: &Actor, now: Duration) {
        let mut known = self.locked();
        if known.len() >= MAX_ENTRIES {
            known.clear();
        }
        known.insert(hash, (actor.clone(), now));
    }

    /// Clears the cache when a token or session becomes invalid.
    pub(super) fn clear(&self) {
        self.locked().clear();
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], (Actor, Duration)>> {
        // A panic cannot leave the map inconsistent: each update is a single step.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use api::access::Role;

    use super::*;

    #[test]
    fn lookups_are_cached_for_seconds() {
        let known = Known::default();
        let actor = Actor { name: "ada".to_owned(), role: Role::Editor };
        let at = Duration::from_secs;
        known.put([1; 32], &actor, at(10));
        assert_eq!(known.get(&[1; 32], at(14)), Some(actor.clone()));
        assert_eq!(known.get(&[1; 32], at(15)), None);
        assert_eq!(known.get(&[2; 32], at(10)), None);
        known.put([1; 32], &actor, at(20));
        known.clear();
        assert_eq!(known.get(&[1; 32], at(20)), None);
    }

    #[test]
    fn few_are_remembered() {
        let known = Known::default();
        for number in 0..3000_u32 {
            let mut hash = [0; 32];
            hash[..4].copy_from_slice(&number.to_le_bytes());
            known.put(hash, &Actor::anyone(), Duration::ZERO);
        }
        assert!(known.locked().len() <= MAX_ENTRIES);
    }
}
