//! Named tokens and browser sessions.

use std::path::Path;

use api::access::{Role, TokenLine};
use jiff::Timestamp;
use sqlx::sqlite::SqliteConnectOptions;
use sqlx::{ConnectOptions, Connection};

use super::{MIGRATIONS, Reader, StoreError, Writer, file};
use crate::clock::rfc3339;

/// Maximum number of valid sessions. Beyond this limit, the oldest session is removed.
const MAX_SESSIONS: i64 = 10_000;
/// Maximum number of sessions per named token, for the browsers of one person.
const MAX_PER_TOKEN: i64 = 20;
/// Maximum number of sessions for the server token, because a team may use it.
const MAX_PER_SERVER: i64 = 1_000;
/// Precision of the stored last use: 10 min, in ms.
const USE_PRECISION_MS: i64 = 600_000;

/// Returns true if the database has the schema of this version. Does not change the database.
pub async fn is_current(database: &Path) -> Result<bool, StoreError> {
    // SQLite deletes the journal of an emptied database even for a reader.
    let database = file::existing(database)?;
    let mut connection = SqliteConnectOptions::new().filename(database).read_only(true).connect().await?;
    let applied: Option<i64> =
        sqlx::query_scalar("SELECT max(version) FROM _sqlx_migrations").fetch_one(&mut connection).await?;
    connection.close().await?;
    Ok(applied == MIGRATIONS.iter().map(|migration| migration.version).max())
}

/// A session to be stored.
#[derive(Debug)]
pub struct NewSession {
    /// Hash of the session value.
    pub hash: [u8; 32],
    /// Named token that opened the session. `None` for the server token.
    pub token_name: Option<String>,
    /// Expiry time.
    pub expires_at: Timestamp,
}

/// Converts a name and role from the database.
fn holder(row: Option<(String, String)>) -> Result<Option<(String, Role)>, StoreError> {
    row.map(|(name, role)| parse_role(&role).map(|role| (name, role))).transpose()
}

fn parse_role(role: &str) -> Result<Role, StoreError> {
    Role::from_id(role)
        .ok_or_else(|| StoreError::Damaged { kind: "token", detail: format!("an unknown role {role:?}") })
}

/// A token row without the hash.
#[derive(sqlx::FromRow)]
struct TokenRow {
    name: String,
    role: String,
    created_at_ms: i64,
    last_used_at_ms: Option<i64>,
    revoked_at_ms: Option<i64>,
}

impl Reader {
    /// Returns name and role of a valid token.
    pub async fn token_holder(&self, hash: &[u8; 32]) -> Result<Option<(String, Role)>, StoreError> {
        let row = sqlx::query_as("SELECT name, role FROM token WHERE hash = ? AND revoked_at_ms IS NULL")
            .bind(&hash[..])
            .fetch_optional(self.pool())
            .await?;
        holder(row)
    }

    /// Returns name and role of the token that opened a session, if token and session are valid.
    pub async fn session_holder(&self, hash: &[u8; 32], now: Timestamp) -> Result<Option<(String, Role)>, StoreError> {
        let row = sqlx::query_as(
            "SELECT name, role FROM session JOIN token ON name = token_name
             WHERE session.hash = ? AND expires_at_ms > ? AND revoked_at_ms IS NULL",
        )
        .bind(&hash[..])
        .bind(now.as_millisecond())
        .fetch_optional(self.pool())
        .await?;
        holder(row)
    }

    /// Returns true if the session is valid and was opened with the server token.
    pub async fn is_server_session(&self, hash: &[u8; 32], now: Timestamp) -> Result<bool, StoreError> {
        let good: Option<i64> =
            sqlx::query_scalar("SELECT 1 FROM session WHERE hash = ? AND expires_at_ms > ? AND token_name IS NULL")
                .bind(&hash[..])
                .bind(now.as_millisecond())
                .fetch_optional(self.pool())
                .await?;
        Ok(good.is_some())
    }

    /// Returns all named tokens, sorted by name.
    pub async fn tokens(&self) -> Result<Vec<TokenLine>, StoreError> {
        let rows: Vec<TokenRow> =
            sqlx::query_as("SELECT name, role, created_at_ms, last_used_at_ms, revoked_at_ms FROM token ORDER BY name")
                .fetch_all(self.pool())
                .await?;
        let lines = rows.into_iter().map(|row| {
            Ok(TokenLine {
                role: parse_role(&row.role)?,
                name: row.name,
                created_at: rfc3339(row.created_at_ms),
                last_used_at: row.last_used_at_ms.map(rfc3339),
                revoked_at: row.revoked_at_ms.map(rfc3339),
            })
        });
        lines.collect()
    }
}

impl Writer {
    /// Stores a token. Returns false if the name exists, even if that token was revoked. Names are
    /// case-insensitive.
    pub async fn add_token(&self, name: &str, role: Role, hash: &[u8; 32], now: Timestamp) -> Result<bool, StoreError> {
        let mut write = self.begin().await?;
        let added = sqlx::query(
            "INSERT OR IGNORE INTO token (hash, name, role, created_at_ms) SELECT ?1, ?2, ?3, ?4
             WHERE NOT EXISTS (SELECT 1 FROM token WHERE name = ?2 COLLATE NOCASE)",
        )
        .bind(&hash[..])
        .bind(name)
        .bind(role.id())
        .bind(now.as_millisecond())
        .execute(&mut *write)
        .await?
        .rows_affected();
        write.commit().await?;
        Ok(added == 1)
    }

    /// Revokes a token together with all sessions. A revoked token is unchanged.
    pub async fn revoke_token(&self, name: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let known = sqlx::query("UPDATE token SET revoked_at_ms = coalesce(revoked_at_ms, ?) WHERE name = ?")
            .bind(now.as_millisecond())
            .bind(name)
            .execute(&mut *write)
            .await?
            .rows_affected();
        if known != 1 {
            return Err(StoreError::missed("token", name));
        }
        sqlx::query("DELETE FROM session WHERE token_name = ?").bind(name).execute(&mut *write).await?;
        write.commit().await
    }

    /// Stores the last use of a token, with a precision of 10 min.
    pub async fn note_token_use(&self, name: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query(
            "UPDATE token SET last_used_at_ms = ?1 WHERE name = ?2 AND coalesce(last_used_at_ms, 0) <= ?1 - ?3",
        )
        .bind(now.as_millisecond())
        .bind(name)
        .bind(USE_PRECISION_MS)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Stores a session and deletes expired sessions.
    pub async fn open_session(&self, session: &NewSession, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("DELETE FROM session WHERE expires_at_ms <= ?")
            .bind(now.as_millisecond())
            .execute(&mut *write)
            .await?;
        sqlx::query("INSERT INTO session (hash, token_name, created_at_ms, expires_at_ms) VALUES (?, ?, ?, ?)")
            .bind(&session.hash[..])
            .bind(session.token_name.as_deref())
            .bind(now.as_millisecond())
            .bind(session.expires_at.as_millisecond())
            .execute(&mut *write)
            .await?;
        let limit = if session.token_name.is_some() { MAX_PER_TOKEN } else { MAX_PER_SERVER };
        sqlx::query(
            "DELETE FROM session WHERE hash IN (
                 SELECT hash FROM session WHERE token_name IS ?1 ORDER BY hash = ?2 DESC, created_at_ms DESC LIMIT -1 OFFSET ?3
             )",
        )
        .bind(session.token_name.as_deref())
        .bind(&session.hash[..])
        .bind(limit)
        .execute(&mut *write)
        .await?;
        sqlx::query(
            "DELETE FROM session WHERE hash IN (SELECT hash FROM session ORDER BY expires_at_ms DESC LIMIT -1 OFFSET ?)",
        )
        .bind(MAX_SESSIONS)
        .execute(&mut *write)
        .await?;
        write.commit().await
    }

    /// Deletes a session if it exists.
    pub async fn end_session(&self, hash: &[u8; 32]) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query("DELETE FROM session WHERE hash = ?").bind(&hash[..]).execute(&mut *write).await?;
        write.commit().await
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    fn at(ms: i64) -> Timestamp {
        Timestamp::from_millisecond(ms).unwrap()
    }

    async fn store() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).await.unwrap();
        (folder, store)
    }

    fn session(hash: u8, token: Option<&str>, expires: i64) -> NewSession {
        NewSession { hash: [hash; 32], token_name: token.map(str::to_owned), expires_at: at(expires) }
    }

    #[tokio::test]
    async fn a_named_token_keeps_its_newest_twenty_sessions() {
        let (_folder, store) = store().await;
        let (reader, writer) = (store.reader(), store.writer());
        assert!(writer.add_token("ada", Role::Editor, &[1; 32], at(0)).await.unwrap());
        for number in 0..25_u8 {
            let opened = at(1_000 + i64::from(number / 2));
            writer.open_session(&session(number, Some("ada"), 900_000), opened).await.unwrap();
            writer.open_session(&session(100 + number, None, 900_000), opened).await.unwrap();
            let newest = reader.session_holder(&[number; 32], opened).await.unwrap();
            assert!(newest.is_some(), "the one that was opened is good");
        }
        let mut good = 0;
        for number in 0..25_u8 {
            good += usize::from(reader.session_holder(&[number; 32], at(2_000)).await.unwrap().is_some());
            assert!(reader.is_server_session(&[100 + number; 32], at(2_000)).await.unwrap());
        }
        assert_eq!(good, 20);
        assert_eq!(reader.session_holder(&[0; 32], at(2_000)).await.unwrap(), None, "the oldest ended");
    }

    #[tokio::test]
    async fn names_are_compared_without_case() {
        let (_folder, store) = store().await;
        assert!(store.writer().add_token("Ada", Role::Editor, &[1; 32], at(0)).await.unwrap());
        for name in ["ada", "ADA", "Ada"] {
            assert!(!store.writer().add_token(name, Role::Admin, &[2; 32], at(0)).await.unwrap(), "{name}");
        }
        assert!(store.writer().add_token("ada-2", Role::Admin, &[2; 32], at(0)).await.unwrap());
    }

    #[tokio::test]
    async fn a_token_is_good_until_it_is_revoked_and_its_name_stays_taken() {
        let (_folder, store) = store().await;
        let (reader, writer) = (store.reader(), store.writer());
        assert!(writer.add_token("ada", Role::Editor, &[1; 32], at(1_000)).await.unwrap());
        assert!(!writer.add_token("ada", Role::Admin, &[2; 32], at(1_000)).await.unwrap(), "the name is taken");
        assert_eq!(reader.token_holder(&[1; 32]).await.unwrap(), Some(("ada".to_owned(), Role::Editor)));
        assert_eq!(reader.token_holder(&[2; 32]).await.unwrap(), None);
        writer.open_session(&session(3, Some("ada"), 90_000), at(2_000)).await.unwrap();
        assert_eq!(reader.session_holder(&[3; 32], at(3_000)).await.unwrap(), Some(("ada".to_owned(), Role::Editor)));

        writer.revoke_token("ada", at(4_000)).await.unwrap();
        writer.revoke_token("ada", at(5_000)).await.unwrap();
        assert_eq!(reader.token_holder(&[1; 32]).await.unwrap(), None);
        assert_eq!(reader.session_holder(&[3; 32], at(6_000)).await.unwrap(), None);
        assert!(!writer.add_token("ada", Role::Editor, &[4; 32], at(7_000)).await.unwrap());
        let line = reader.tokens().await.unwrap().remove(0);
        assert_eq!(line.revoked_at.as_deref(), Some("1970-01-01T00:00:04Z"));
        let error = writer.revoke_token("bob", at(8_000)).await.unwrap_err();
        assert_eq!(error.to_string(), "there is no token bob");
    }

    #[tokio::test]
    async fn a_session_ends_by_time_or_by_its_user() {
        let (_folder, store) = store().await;
        let (reader, writer) = (store.reader(), store.writer());
        writer.open_session(&session(1, None, 10_000), at(0)).await.unwrap();
        assert!(reader.is_server_session(&[1; 32], at(9_999)).await.unwrap());
        assert!(!reader.is_server_session(&[1; 32], at(10_000)).await.unwrap());
        assert_eq!(reader.session_holder(&[1; 32], at(0)).await.unwrap(), None, "no named token opened it");
        writer.end_session(&[1; 32]).await.unwrap();
        assert!(!reader.is_server_session(&[1; 32], at(0)).await.unwrap());
        let unknown = writer.open_session(&session(2, Some("nobody"), 10_000), at(0)).await;
        assert!(unknown.is_err(), "a session needs its token");
    }

    #[tokio::test]
    async fn the_last_use_is_noted_to_ten_minutes() {
        let (_folder, store) = store().await;
        store.writer().add_token("ada", Role::Reader, &[1; 32], at(0)).await.unwrap();
        for (used_at, noted) in [
            (600_000, "1970-01-01T00:10:00Z"),
            (1_199_999, "1970-01-01T00:10:00Z"),
            (1_200_000, "1970-01-01T00:20:00Z"),
        ] {
            store.writer().note_token_use("ada", at(used_at)).await.unwrap();
            let line = store.reader().tokens().await.unwrap().remove(0);
            assert_eq!(line.last_used_at.as_deref(), Some(noted), "{used_at}");
        }
    }
}
