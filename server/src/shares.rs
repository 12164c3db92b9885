//! Shares of what is scarce: no sender takes all of it.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::actor::Actor;
use crate::client::sender_network;

/// So much is being imported that there was no turn for long.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other files are being read; try again in a few seconds")]
pub struct Busy;

/// Who has a share: an address (of IPv6 a network of 64 bits), and the holder of each token there. A cookie that says which browser
/// asks does not count: a sender can invent many.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sharer {
    address: IpAddr,
    actor: Option<String>,
}

impl Sharer {
    /// A holder of a token at an address.
    #[must_use]
    pub fn new(address: IpAddr, actor: Option<&str>) -> Self {
        Self { address, actor: actor.map(str::to_owned) }
    }

    /// The sender of a request that the guard let in.
    pub(crate) fn of(extensions: &Extensions) -> Self {
        let actor = extensions.get::<Actor>().map(|actor| actor.name.as_str());
        Self::new(sender_network(extensions), actor)
    }
}

/// The share of each sender. The share of a sender that holds nothing is not kept.
#[derive(Debug)]
pub(crate) struct Shares {
    each: usize,
    table: Mutex<HashMap<Sharer, Weak<Semaphore>>>,
}

impl Shares {
    pub(crate) fn new(each: usize) -> Self {
        Self { each, table: Mutex::default() }
    }

    /// The share of a sender.
    pub(crate) fn of(&self, sharer: &Sharer) -> Arc<Semaphore> {
        let mut table = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(share) = table.get(sharer).and_then(Weak::upgrade) {
            return share;
        }
        table.retain(|_, share| share.strong_count() > 0);
        let share = Arc::new(Semaphore::new(self.each));
        table.insert(sharer.clone(), Arc::downgrade(&share));
        share
    }
}

/// Places for files on their way. A sender has all but one, so that the others always find one.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    shares: Shares,
    patience: Duration,
}

/// A place, until it is dropped.
#[derive(Debug)]
pub struct Place {
    _held: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Places {
    pub(crate) fn new(places: usize, patience: Duration) -> Self {
        let places = places.max(1);
        let shares = Shares::new(places.saturating_sub(1).max(1));
        Self { all: Arc::new(Semaphore::new(places)), shares, patience }
    }

    /// A place. It is waited for a while.
    pub(crate) async fn place(&self, sharer: &Sharer) -> Result<Place, Busy> {
        let taking = async {
            // Of the share first: who waits for it takes nothing from the others.
            let share = self.shares.of(sharer).acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Place { _held: (share, all) })
        };
        timeout(self.patience, taking).await.ok().flatten().ok_or(Busy)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ONE: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[tokio::test]
    async fn a_sender_leaves_a_place_to_the_others() {
        let places = Places::new(3, Duration::from_millis(1));
        let [ada, bob] = ["ada", "bob"].map(|name| Sharer::new(ONE, Some(name)));
        let held = (places.place(&ada).await.unwrap(), places.place(&ada).await.unwrap());
        assert_eq!(places.place(&ada).await.unwrap_err(), Busy);
        let other = places.place(&bob).await.unwrap();
        assert_eq!(places.place(&bob).await.unwrap_err(), Busy, "all places are taken");
        drop((held, other));
        places.place(&ada).await.unwrap();
        assert_eq!(places.shares.table.lock().unwrap().len(), 1, "the share of bob is not kept");
    }
}
