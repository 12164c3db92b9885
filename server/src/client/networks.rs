//! Address sets, used for trusted proxies and for peers without a connection limit.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::str::FromStr;

use axum::http::HeaderMap;

use super::Peer;

/// Header to which a proxy appends the client address.
const FORWARDED_FOR: &str = "x-forwarded-for";

/// Text that is neither an address nor a network.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is neither an address nor a network such as 172.16.0.0/12")]
pub struct NotANetwork(String);

/// An address prefix.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Network {
    address: IpAddr,
    prefix: u32,
}

/// A set of addresses.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Networks(Vec<Network>);

impl Networks {
    /// Parses addresses (`10.0.0.7`, `::1`) and networks (`172.16.0.0/12`). Skips empty strings,
    /// because container files set unused variables to an empty value.
    ///
    /// # Errors
    /// Returns the first string that is neither an address nor a network.
    pub fn parse(texts: &[String]) -> Result<Self, NotANetwork> {
        let texts = texts.iter().map(|text| text.trim()).filter(|text| !text.is_empty());
        texts.map(str::parse).collect::<Result<_, _>>().map(Self)
    }

    /// Adds the loopback addresses to the set.
    #[must_use]
    pub fn with_loopback(mut self) -> Self {
        self.0.push(Network { address: Ipv4Addr::new(127, 0, 0, 0).into(), prefix: 8 });
        self.0.push(Network { address: Ipv6Addr::LOCALHOST.into(), prefix: 128 });
        self
    }

    /// True if the set contains the address.
    pub fn contains(&self, address: IpAddr) -> bool {
        self.0.iter().any(|network| network.contains(address))
    }

    /// Returns the sender of a request. `self` is the set of trusted proxies, `connected` is the
    /// remote address of the connection.
    ///
    /// A proxy appends the client address to the header. The last address that is not a trusted
    /// proxy was therefore written by a trusted proxy. A client can forge all addresses before it.
    pub(crate) fn peer(&self, connected: IpAddr, headers: &HeaderMap) -> Peer {
        let connected = connected.to_canonical();
        if !self.contains(connected) {
            return Peer { address: connected, by_proxy: false };
        }
        let values = headers.get_all(FORWARDED_FOR).iter().rev().filter_map(|value| value.to_str().ok());
        let mut address = connected;
        for entry in values.flat_map(|value| value.rsplit(',')) {
            let Some(forwarded) = forwarded(entry.trim()) else { break };
            address = forwarded;
            if !self.contains(address) {
                break;
            }
        }
        Peer { address, by_proxy: true }
    }
}

impl Network {
    fn contains(self, other: IpAddr) -> bool {
        let same_family = self.address.is_ipv4() == other.is_ipv4();
        let differing = bits(self.address) ^ bits(other);
        // For prefix 0 the shift removes all bits, so the network contains every address in the
        // family.
        same_family && differing.checked_shr(128 - self.prefix).unwrap_or(0) == 0
    }
}

impl FromStr for Network {
    type Err = NotANetwork;

    fn from_str(text: &str) -> Result<Self, NotANetwork> {
        let refuse = || NotANetwork(text.to_owned());
        let (address, prefix) = match text.split_once('/') {
            Some((address, prefix)) => (address, Some(prefix.parse::<u32>().map_err(|_| refuse())?)),
            None => (text, None),
        };
        let address: IpAddr = address.parse().map_err(|_| refuse())?;
        let width = if address.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.unwrap_or(width);
        if prefix > width { Err(refuse()) } else { Ok(Self { address, prefix }) }
    }
}

/// Address bits, most significant first.
fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => u128::from(address.to_bits()) << 96,
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// Parses an address from the header, with an optional port.
fn forwarded(entry: &str) -> Option<IpAddr> {
    let address = entry.parse::<IpAddr>().ok();
    let address = address.or_else(|| entry.parse::<std::net::SocketAddr>().ok().map(|address| address.ip()));
    let address = address.or_else(|| entry.strip_prefix('[')?.strip_suffix(']')?.parse().ok());
    address.map(|address: IpAddr| address.to_canonical())
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn networks(texts: &[&str]) -> Result<Networks, NotANetwork> {
        Networks::parse(&texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>())
    }

    fn address(text: &str) -> IpAddr {
        text.parse().unwrap()
    }

    #[test]
    fn networks_contain_addresses_with_their_prefix() {
        let set = networks(&["172.16.0.0/12", " 10.0.0.7 ", "", "fd00::/8"]).unwrap();
        for (text, contained) in [
            ("172.16.0.0", true),
            ("172.31.255.255", true),
            ("172.32.0.0", false),
            ("172.15.255.255", false),
            ("10.0.0.7", true),
            ("10.0.0.8", false),
            ("fd12::1", true),
            ("fe80::1", false),
            ("::ac10:0", false),
        ] {
            assert_eq!(set.contains(address(text)), contained, "{text}");
        }
        assert!(networks(&["0.0.0.0/0"]).unwrap().contains(address("203.0.113.9")));
        assert!(!networks(&["0.0.0.0/0"]).unwrap().contains(address("::1")));
        assert!(!Networks::default().contains(address("127.0.0.1")));
        let loopback = Networks::default().with_loopback();
        for (text, contained) in [("127.0.0.1", true), ("127.9.9.9", true), ("::1", true), ("::2", false)] {
            assert_eq!(loopback.contains(address(text)), contained, "{text}");
        }
    }

    #[test]
    fn invalid_networks_are_rejected() {
        for text in ["proxy", "10.0.0.0/33", "::/129", "10.0.0.0/", "10.0.0/8", "10.0.0.0/-1"] {
            assert_eq!(networks(&[text]), Err(NotANetwork(text.to_owned())), "{text}");
        }
    }

    #[test]
    fn only_trusted_proxies_say_who_asks() {
        let proxies = networks(&["10.0.0.0/8"]).unwrap();
        for (connected, values, expected, by_proxy) in [
            // Without a proxy, the header is ignored.
            ("203.0.113.9", &["198.51.100.1"][..], "203.0.113.9", false),
            ("10.0.0.1", &["198.51.100.1"], "198.51.100.1", true),
            // The client sent 1.1.1.1. The proxy appended the real address.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1"], "198.51.100.1", true),
            // Two chained proxies, in a single header or in two.
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1, 10.0.0.2"], "198.51.100.1", true),
            ("10.0.0.1", &["1.1.1.1, 198.51.100.1", "10.0.0.2"], "198.51.100.1", true),
            ("10.0.0.1", &["198.51.100.1:4711"], "198.51.100.1", true),
            ("10.0.0.1", &["[2001:db8::1]:4711"], "2001:db8::1", true),
            ("10.0.0.1", &["[2001:db8::1]"], "2001:db8::1", true),
            ("::ffff:10.0.0.1", &["::ffff:198.51.100.1"], "198.51.100.1", true),
            // Parsing stops at an invalid entry.
            ("10.0.0.1", &["198.51.100.1, unknown"], "10.0.0.1", true),
            ("10.0.0.1", &[], "10.0.0.1", true),
        ] {
            let mut headers = HeaderMap::new();
            for value in values {
                headers.append(FORWARDED_FOR, HeaderValue::from_static(value));
            }
            let peer = proxies.peer(address(connected), &headers);
            assert_eq!(peer, Peer { address: address(expected), by_proxy }, "{connected} {values:?}");
        }
    }
}
