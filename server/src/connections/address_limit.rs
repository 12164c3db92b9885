//! Connections of each address.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv6Addr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Bits of an IPv6 address that name a site. One machine has all addresses of its site.
const SITE_BITS: u32 = 64;

/// Counts the connections of each address, so that no one takes all of them.
#[derive(Debug)]
pub(super) struct AddressLimit {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    limit: u32,
}

/// One connection of an address, until it is dropped.
#[derive(Debug)]
pub(super) struct AddressSlot {
    open: Arc<Mutex<HashMap<IpAddr, u32>>>,
    site: IpAddr,
}

impl AddressLimit {
    /// Allows so many of each.
    pub(super) fn new(limit: u32) -> Self {
        Self { open: Arc::default(), limit: limit.max(1) }
    }

    /// Counts a further connection of an address; `None` where it has as many as it may.
    pub(super) fn slot(&self, address: IpAddr) -> Option<AddressSlot> {
        let site = site(address);
        let mut open = lock(&self.open);
        let count = open.entry(site).or_default();
        // An entry that is made here has none, which is below every limit.
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

/// What counts as one address: an IPv4 address, or the site of an IPv6 address.
fn site(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => Ipv6Addr::from_bits(address.to_bits() >> SITE_BITS << SITE_BITS).into(),
        address @ IpAddr::V4(_) => address,
    }
}

/// The counts are whole after a panic elsewhere: they change in single steps.
fn lock(open: &Mutex<HashMap<IpAddr, u32>>) -> MutexGuard<'_, HashMap<IpAddr, u32>> {
    open.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_address_has_its_own_connections() {
        let limit = AddressLimit::new(2);
        let slot = |address: &str| limit.slot(address.parse().unwrap());
        let first = slot("203.0.113.9").unwrap();
        // The same address as IPv6 writes it.
        let second = slot("::ffff:203.0.113.9").unwrap();
        assert!(slot("203.0.113.9").is_none());
        let other = slot("203.0.113.10").unwrap();
        drop(first);
        let again = slot("203.0.113.9").unwrap();
        assert!(slot("203.0.113.9").is_none());
        // Two addresses of one site, and another site.
        let site = [slot("2001:db8::1").unwrap(), slot("2001:db8::ffff:1").unwrap()];
        assert!(slot("2001:db8::2").is_none());
        let next = slot("2001:db8:0:1::1").unwrap();
        drop((second, other, again, site, next));
        assert_eq!(lock(&limit.open).len(), 0);
    }
}
