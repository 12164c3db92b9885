//! Who asks: the holder of the server's token, of a named one, or of a session.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use api::access::Role;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// How long what was looked up is believed: a token that the command line revokes ends within this time.
pub(super) const BELIEVED: Duration = Duration::from_secs(5);
/// Actors that are remembered.
const MOST: usize = 1024;

/// Name of whoever holds the token of a run.
const RUN_TOKEN: &str = "(run token)";

/// Who asks. Names with brackets are nobody's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// Name of the token.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) role: Role,
}

impl Actor {
    /// The holder of the token of the environment.
    pub(super) fn of_server_token() -> Self {
        Self { name: "(server token)".to_owned(), role: Role::Admin }
    }

    /// Anyone, where no token is needed.
    pub(super) fn anyone() -> Self {
        Self { name: "(anyone)".to_owned(), role: Role::Admin }
    }

    /// Whoever holds the token of the run that is written to. Its role is looked at by nobody: the handler looks at the token.
    pub(super) fn of_run_token() -> Self {
        Self { name: RUN_TOKEN.to_owned(), role: Role::Reader }
    }

    /// Whether nobody else is known than the holder of a run's token.
    pub(crate) fn is_run_token(&self) -> bool {
        self.name == RUN_TOKEN
    }
}

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = Infallible;

    /// The one whom the guard found.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::of_run_token))
    }
}

/// Actors that were looked up of late, by the hash of what they sent.
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
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(hash, (actor.clone(), now));
    }

    /// Nothing is believed any longer: a token was revoked or a session ended.
    pub(super) fn clear(&self) {
        self.locked().clear();
    }

    fn locked(&self) -> MutexGuard<'_, BTreeMap<[u8; 32], (Actor, Duration)>> {
        // Changed in single steps, so it is whole even after a panic elsewhere.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_looked_up_is_believed_for_seconds() {
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
        assert!(known.locked().len() <= MOST);
    }
}
