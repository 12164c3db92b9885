//! Client identity for fair scheduling.

use std::convert::Infallible;
use std::net::IpAddr;

use axum::extract::FromRequestParts;
use axum::http::request::Parts;

use crate::actor::Actor;
use crate::client::{Peer, network};

/// Owner of a computation: the holder of a named token or session, otherwise an address. Anonymous
/// cookies are ignored, because a client can create any number of cookies. The server token is
/// shared, so these clients are identified by address.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Claimant(String);

impl Claimant {
    /// Returns the identity of the server itself, for sweeps and for jobs from an earlier server.
    pub fn server() -> Self {
        Self("the server".to_owned())
    }

    /// Creates an identity by name in tests.
    pub fn named(name: &str) -> Self {
        Self(format!("token {name}"))
    }

    fn new(actor: Option<&Actor>, address: Option<IpAddr>) -> Self {
        match actor {
            // Names in parentheses are reserved for built-in actors.
            Some(actor) if !actor.name.starts_with('(') => Self::named(&actor.name),
            _ => {
                Self(format!("address {}", address.map(network).map_or_else(String::new, |subnet| subnet.to_string())))
            }
        }
    }
}

impl<S: Sync> FromRequestParts<S> for Claimant {
    type Rejection = Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        let address = parts.extensions.get::<Peer>().map(|peer| peer.address);
        Ok(Self::new(parts.extensions.get::<Actor>(), address))
    }
}

#[cfg(test)]
mod tests {
    use api::access::Role;

    use super::*;

    #[test]
    fn claimants_are_tokens_or_addresses() {
        let actor = |name: &str| Actor { name: name.to_owned(), role: Role::Editor };
        let claimant = |name: &str, address: &str| Claimant::new(Some(&actor(name)), address.parse().ok());
        assert_eq!(claimant("ada", "10.0.0.1"), claimant("ada", "10.0.0.2"));
        assert_ne!(claimant("ada", "10.0.0.1"), claimant("bob", "10.0.0.1"));
        for shared in ["(anyone)", "(server token)"] {
            assert_eq!(claimant(shared, "10.0.0.1"), Claimant::new(None, "10.0.0.1".parse().ok()));
            assert_ne!(claimant(shared, "10.0.0.1"), claimant(shared, "10.0.0.2"));
            assert_eq!(claimant(shared, "2001:db8::1"), claimant(shared, "2001:db8::2"));
            assert_ne!(claimant(shared, "2001:db8::1"), claimant(shared, "2001:db8:0:1::1"));
        }
    }
}
