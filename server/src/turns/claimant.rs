//! Whose computation it is.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::actor::Actor;
use crate::client::{Peer, network};

/// Whose computation it is: the holder of a named token or session, else an address. An anonymous cookie does not count, because
/// a client can make up any number of them. The shared token of the server counts with the address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claimant(String);

impl Claimant {
    /// The server itself: sweeps, and jobs that a server before left.
    pub fn server() -> Self {
        Self("the server".to_owned())
    }

    /// A client by its name in tests.
    pub fn named(name: &str) -> Self {
        Self(format!("token {name}"))
    }

    fn of(actor: Option<&Actor>, address: Option<IpAddr>) -> Self {
        match actor {
            // Names with brackets are nobody's.
            Some(actor) if !actor.name.starts_with('(') => Self::named(&actor.name),
            _ => Self(format!("address {}", address.map(network).map_or_else(String::new, |of| of.to_string()))),
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Claimant {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let address = parts.extensions.get::<Peer>().map(|peer| peer.address);
        Ok(Self::of(parts.extensions.get::<Actor>(), address))
    }
}

#[cfg(test)]
mod tests {
    use api::access::Role;

    use super::*;

    #[test]
    fn claimants_are_tokens_or_addresses() {
        let actor = |name: &str| Actor { name: name.to_owned(), role: Role::Editor };
        let of = |name: &str, address: &str| Claimant::of(Some(&actor(name)), address.parse().ok());
        assert_eq!(of("ada", "10.0.0.1"), of("ada", "10.0.0.2"));
        assert_ne!(of("ada", "10.0.0.1"), of("bob", "10.0.0.1"));
        for shared in ["(anyone)", "(server token)"] {
            assert_eq!(of(shared, "10.0.0.1"), Claimant::of(None, "10.0.0.1".parse().ok()));
            assert_ne!(of(shared, "10.0.0.1"), of(shared, "10.0.0.2"));
            assert_eq!(of(shared, "2001:db8::1"), of(shared, "2001:db8::2"));
            assert_ne!(of(shared, "2001:db8::1"), of(shared, "2001:db8:0:1::1"));
        }
    }
}
