//! Fair shares of a limited resource. No single sender can exhaust the resource.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, PoisonError, Weak};
use std::time::Duration;

use axum::http::Extensions;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

use crate::actor::Actor;
use crate::client::sender_network;

/// Error: no turn became free within the timeout.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("other files are being read; try again in a few seconds")]
pub struct NoFreeSlot;

/// Sender with a share: an address (for IPv6, a /64 network) and the token holder. Browser cookies
/// are ignored, because a sender can create any number.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Sharer {
    address: IpAddr,
    actor: Option<String>,
}

impl Sharer {
    /// Creates a sender from an address and an optional token holder.
    #[must_use]
    pub fn new(address: IpAddr, actor: Option<&str>) -> Self {
        Self { address, actor: actor.map(str::to_owned) }
    }

    /// Returns the sender of an authorised request.
    pub(crate) fn from_extensions(extensions: &Extensions) -> Self {
        let actor = extensions.get::<Actor>().map(|actor| actor.name.as_str());
        Self::new(sender_network(extensions), actor)
    }
}

/// Shares per sender. An unused share is dropped.
#[derive(Debug)]
pub(crate) struct Shares {
    each: usize,
    table: Mutex<HashMap<Sharer, Weak<Semaphore>>>,
}

impl Shares {
    pub(crate) fn new(each: usize) -> Self {
        Self { each, table: Mutex::default() }
    }

    /// Returns the share of a sender.
    pub(crate) fn share(&self, sharer: &Sharer) -> Arc<Semaphore> {
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

/// Upload slots. A sender can use all slots but one, so other senders always find a free slot.
#[derive(Debug)]
pub(crate) struct Places {
    all: Arc<Semaphore>,
    shares: Shares,
    patience: Duration,
}

/// An upload slot. Dropping it releases the slot.
#[derive(Debug)]
pub struct Slot {
    _permits: (OwnedSemaphorePermit, OwnedSemaphorePermit),
}

impl Places {
    pub(crate) fn new(places: usize, patience: Duration) -> Self {
        let places = places.max(1);
        let shares = Shares::new(places.saturating_sub(1).max(1));
        Self { all: Arc::new(Semaphore::new(places)), shares, patience }
    }

    /// Acquires a free slot within the timeout.
    pub(crate) async fn acquire(&self, sharer: &Sharer) -> Result<Slot, NoFreeSlot> {
        let taking = async {
            // Acquire the sender's share first, so a delayed sender does not block other senders.
            let share = self.shares.share(sharer).acquire_owned().await.ok()?;
            let all = Arc::clone(&self.all).acquire_owned().await.ok()?;
            Some(Slot { _permits: (share, all) })
        };
        timeout(self.patience, taking).await.ok().flatten().ok_or(NoFreeSlot)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ADDRESS: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1));

    #[tokio::test]
    async fn sender_leaves_a_slot_to_others() {
        let places = Places::new(3, Duration::from_millis(1));
        let [ada, bob] = ["ada", "bob"].map(|name| Sharer::new(ADDRESS, Some(name)));
        let slots = (places.acquire(&ada).await.unwrap(), places.acquire(&ada).await.unwrap());
        assert_eq!(places.acquire(&ada).await.unwrap_err(), NoFreeSlot);
        let other = places.acquire(&bob).await.unwrap();
        assert_eq!(places.acquire(&bob).await.unwrap_err(), NoFreeSlot, "all places are taken");
        drop((slots, other));
        places.acquire(&ada).await.unwrap();
        assert_eq!(places.shares.table.lock().unwrap().len(), 1, "the share of bob is not kept");
    }
}
