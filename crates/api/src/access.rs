//! Access: sessions, tokens with roles, and the audit log.

use serde::{Deserialize, Serialize};

/// Role of a token holder.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(rename_all = "snake_case")]
pub enum Role {
    /// Reads everything except tokens and the audit log, and sends requests that store nothing.
    Reader,
    /// Changes everything except tokens.
    Editor,
    /// Full access.
    Admin,
}

impl Role {
    /// All roles, in ascending order.
    pub const ALL: [Self; 3] = [Self::Reader, Self::Editor, Self::Admin];

    /// Identifier.
    pub const fn id(self) -> &'static str {
        match self {
            Self::Reader => "reader",
            Self::Editor => "editor",
            Self::Admin => "admin",
        }
    }

    /// Returns the role with an identifier.
    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|role| role.id() == id)
    }
}

/// The actor behind a request.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct Identity {
    /// Token name, `(server token)`, or `(anyone)` if the server needs no token.
    pub actor: String,
    /// Role of the actor.
    pub role: Role,
    /// True if the server needs a token.
    pub token_needed: bool,
}

/// A named token, without the token itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenLine {
    /// Name.
    pub name: String,
    /// Role of the holder.
    pub role: Role,
    /// Creation time, RFC 3339 in UTC.
    pub created_at: String,
    /// Time of the last use, rounded to ten minutes. Omitted if the token was never used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub last_used_at: Option<String>,
    /// Time of revocation. Omitted if the token is valid.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revoked_at: Option<String>,
}

/// All named tokens, sorted by name.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct TokenList {
    /// The tokens.
    pub tokens: Vec<TokenLine>,
}

/// A token to create.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
#[serde(deny_unknown_fields)]
pub struct NewToken {
    /// Name of the holder: 1 to 60 letters, digits, `-`, `_`, `.` or `@`.
    pub name: String,
    /// Role of the holder.
    pub role: Role,
}

/// A created token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct CreatedToken {
    /// Name.
    pub name: String,
    /// Role of the holder.
    pub role: Role,
    /// The token. The server returns it once and stores only a hash.
    pub token: String,
}

/// An audited change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditLine {
    /// Number, ascending.
    pub number: u64,
    /// Time, RFC 3339 in UTC.
    pub at: String,
    /// Actor: token name, `(server token)`, `(run token)`, `(command line)`, or `(anyone)` if the
    /// server needs no token.
    pub actor: String,
    /// Method of the request.
    pub method: String,
    /// Action, for example `create`, `change`, `delete`, `restore`, `plan`.
    pub action: String,
    /// Object type, for example `scenario`.
    pub kind: String,
    /// Object identifier. Empty if the response contains none.
    pub object: String,
}

/// A page of the audit log, newest first.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "openapi", derive(utoipa::ToSchema))]
pub struct AuditPage {
    /// The changes.
    pub changes: Vec<AuditLine>,
    /// Value of `after` for the next page. Omitted on the last page.
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
