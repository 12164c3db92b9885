//! Who sends a request: the holder of the server's token, of a named token, or of a session.

use std::convert::Infallible;

use api::access::Role;
use axum::extract::FromRequestParts;
use axum::http::request::Parts;

/// Name of the actor with a run token.
const RUN_TOKEN: &str = "(run token)";

/// Sender of a request. Names in parentheses are reserved for built-in actors.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Actor {
    /// Name of the token.
    pub(crate) name: String,
    /// What it may do.
    pub(crate) role: Role,
}

impl Actor {
    /// The holder of the token of the environment.
    pub(crate) fn for_server_token() -> Self {
        Self { name: "(server token)".to_owned(), role: Role::Admin }
    }

    /// Anyone, where no token is needed.
    pub(crate) fn anyone() -> Self {
        Self { name: "(anyone)".to_owned(), role: Role::Admin }
    }

    /// Whoever holds the token of the run that is written to. Its role is looked at by nobody: the handler looks at the token.
    pub(crate) fn for_run_token() -> Self {
        Self { name: RUN_TOKEN.to_owned(), role: Role::Reader }
    }

    /// Returns true for the built-in actor with a run token.
    pub(crate) fn is_run_token(&self) -> bool {
        self.name == RUN_TOKEN
    }
}

impl<S: Sync> FromRequestParts<S> for Actor {
    type Rejection = Infallible;

    /// Returns the actor from the guard. The default is the run-token actor.
    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Infallible> {
        Ok(parts.extensions.get::<Self>().cloned().unwrap_or_else(Self::for_run_token))
    }
}
