//! Connection limit per address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Prefix length in bits of an IPv6 site. A single machine can use all addresses in a site.
const SITE_BITS: u32 = 64;

/// Limits connections per address, so no single address can occupy all slots.
#[derive(Debug)]
pub(super) struct AddressLimit {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    limit: u32,
}

/// A counted connection. Dropping it decrements the count.
#[derive(Debug)]
pub(super) struct AddressSlot {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    site: IpAddr,
}

impl AddressLimit {
    pub(super) fn new(limit: u32) -> Self {
        Self { open: Arc::default(), limit: limit.max(1) }
    }

    /// Adds a connection. Returns `None` if the address is at the limit.
    pub(super) fn slot(&self, address: IpAddr) -> Option<AddressSlot> {
        let site = site(address);
        let mut open = lock(&self.open);
        let count = open.entry(site).or_default();
        // A new entry starts at zero, below any limit.
        if *count >= self.limit {
            return None;
        }
        *count += 1;
        Some(AddressSlot { open: Arc::clone(&self.open), site })
    }
}

impl Drop for AddressSlot {
    fn drop(&mut self) {
        let mut open = lock(&self.open);
        let left = open.get_mut(&self.site).map_or(0, |count| {
            *count -= 1;
            *count
        });
        if left == 0 {
            open.remove(&self.site);
        }
    }
}

/// Maps an address to the unit of counting: an IPv4 address, or an IPv6 site.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> SITE_BITS << SITE_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// Ignores poisoning: each update is atomic, so the map is consistent after a panic.
fn lock(open: &Mutex<HashMap<IpAddr, u32>>) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connection_limit_is_per_address() {
        let limit = AddressLimit::new(2);
        let slot = |address: &str| limit.slot(address.parse().unwrap());
        let first = slot("203.0.113.9").unwrap();
        // The IPv4-mapped IPv6 form of the same address.
        let second = slot("::ffff:203.0.113.9").unwrap();
        assert!(slot("203.0.113.9").is_none());
        let other = slot("203.0.113.10").unwrap();
        drop(first);
        let again = slot("203.0.113.9").unwrap();
        assert!(slot("203.0.113.9").is_none());
        // Two addresses in one site, and another site.
        let site = [slot("2001:db8::1").unwrap(), slot("2001:db8::ffff:1").unwrap()];
        assert!(slot("2001:db8::2").is_none());
        let next = slot("2001:db8:0:1::1").unwrap();
        drop((second, other, again, site, next));
        assert_eq!(lock(&limit.open).len(), 0);
    }
}
