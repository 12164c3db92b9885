//! Who may do what: sessions, tokens with roles, and the record of changes.

use serde::{Deserialize, Serialize};

/// What the holder of a token may do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Read everything but tokens and the record of changes, and ask questions whose answers are not stored.
    Reader,
    /// Change everything but tokens.
    Editor,
    /// Everything.
    Admin,
}

impl Role {
    /// All roles, the least first.
    pub const ALL: [Self; 3] = [Self::Reader, Self::Editor, Self::Admin];

    /// Identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// The role of that identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.id() == id)
    }
}

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Identity {
    /// Name of the token, or `(server token)`; `(anyone)` where no token is needed.
    pub actor: String,
    /// What the actor may do.
    pub role: Role,
    /// Whether the server needs a token.
    pub token_needed: bool,
}

/// A named token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenLine {
    /// Name.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// When it was made, RFC 3339 in UTC.
    pub created_at: String,
    /// When it was last used, to ten minutes; absent: never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// When it was revoked; absent: it is good.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// All named tokens, by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenLine>,
}

/// A token to be made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of its holder: 1 to 60 letters, digits and any of `-`, `_`, `.`, `@`.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
}

/// A token that was made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct MadeToken {
    /// Name.
    pub name: String,
    /// What its holder may do.
    pub role: Role,
    /// The token. It is shown once: the server keeps a hash.
    pub token: String,
}

/// A change that somebody made.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// Number, rising.
    pub number: u64,
    /// When, RFC 3339 in UTC.
    pub at: String,
    /// Who: the name of a token, `(server token)`, `(run token)`, `(command line)`, or `(anyone)` where no token is needed.
    pub actor: String,
    /// Method of the request.
    pub method: String,
    /// What was done, for example `create`, `change`, `delete`, `restore`, `plan`.
    pub action: String,
    /// Kind of the thing, for example `scenario`.
    pub kind: String,
    /// Its identifier; empty where the answer names none.
    pub object: String,
}

/// A part of the record of changes, the latest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The changes.
    pub changes: Vec<AuditLine>,
    /// `after` of the next part; absent at the end.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub next: Option<u64>,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn roles_have_an_order_and_an_identifier() {
        assert!(Role::Reader < Role::Editor && Role::Editor < Role::Admin);
        for role in Role::ALL {
            assert_eq!(Role::from_id(role.id()), Some(role));
            assert_eq!(serde_json::to_value(role).unwrap(), role.id());
        }
        assert_eq!(Role::from_id("owner"), None);
    }
}
