//! Audit log of recent changes: time, actor and change.

use api::access::{AuditLine, AuditPage};
use jiff::Timestamp;

use super::{Reader, StoreError, Writer};
use crate::changes::Change;
use crate::clock::rfc3339;

/// Maximum number of records, which use a few tens of MB.
const MAX_RECORDS: i64 = 200_000;
/// Repeated changes within this time share one record, so that repetition cannot push older records
/// out.
const REPEAT_MS: i64 = 60_000;
/// Number of latest records that are searched for a repetition.
const RECENT: i64 = 64;

impl Writer {
    /// Records a change and deletes the oldest records beyond the limit.
    pub(crate) async fn record_change(&self, actor: &str, change: &Change, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query(
            "INSERT INTO audit (at_ms, actor, method, action, kind, object) SELECT ?1, ?2, ?3, ?4, ?5, ?6
             WHERE NOT EXISTS (
                 SELECT 1 FROM (SELECT * FROM audit ORDER BY number DESC LIMIT ?8) AS recent
                 WHERE recent.at_ms > ?1 - ?7 AND (recent.actor, recent.method, recent.action, recent.kind, recent.object)
                     = (?2, ?3, ?4, ?5, ?6)
             )",
        )
        .bind(now.as_millisecond())
        .bind(actor)
        .bind(&change.method)
        .bind(&change.action)
        .bind(&change.kind)
        .bind(&change.object)
        .bind(REPEAT_MS)
        .bind(RECENT)
        .execute(&mut *write)
        .await?;
        sqlx::query("DELETE FROM audit WHERE number <= (SELECT max(number) FROM audit) - ?")
            .bind(MAX_RECORDS)
            .execute(&mut *write)
            .await?;
        write.commit().await
    }
}

impl Reader {
    /// Returns changes, latest first. If `after` is set, only records with smaller numbers are
    /// returned.
    pub async fn changes(&self, after: Option<u64>, limit: u32) -> Result<AuditPage, StoreError> {
        // Record numbers cannot exceed the integer range in SQLite.
        let before = after.and_then(|number| i64::try_from(number).ok()).unwrap_or(i64::MAX);
        let rows: Vec<(i64, i64, String, String, String, String, String)> = sqlx::query_as(
            "SELECT number, at_ms, actor, method, action, kind, object FROM audit
             WHERE number < ? ORDER BY number DESC LIMIT ?",
        )
        .bind(before)
        .bind(i64::from(limit) + 1)
        .fetch_all(self.pool())
        .await?;
        let mut changes: Vec<AuditLine> = rows
            .into_iter()
            .map(|(number, at, actor, method, action, kind, object)| AuditLine {
                number: number.unsigned_abs(),
                at: rfc3339(at),
                actor,
                method,
                action,
                kind,
                object,
            })
            .collect();
        let has_more = changes.len() as u64 > u64::from(limit);
        changes.truncate(limit as usize);
        let next = changes.last().filter(|_| has_more).map(|last| last.number);
        Ok(AuditPage { changes, next })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    #[tokio::test]
    async fn repeats_within_a_minute_are_merged() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).await.unwrap();
        let [method, action, kind, object] = ["POST", "finish", "run", "r"].map(str::to_owned);
        let change = Change { method, action, kind, object };
        for (actor, second) in [("ada", 0), ("bob", 1), ("ada", 59), ("ada", 61)] {
            let at = Timestamp::from_second(second).unwrap();
            store.writer().record_change(actor, &change, at).await.unwrap();
        }
        let changes = store.reader().changes(None, 10).await.unwrap().changes;
        let actors: Vec<&str> = changes.iter().map(|change| change.actor.as_str()).collect();
        assert_eq!(actors, ["ada", "bob", "ada"]);
    }

    #[tokio::test]
    async fn changes_come_by_page_the_latest_first() {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("a.db")).await.unwrap();
        let change = |object: &str| Change {
            method: "DELETE".to_owned(),
            action: "delete".to_owned(),
            kind: "run".to_owned(),
            object: object.to_owned(),
        };
        for (second, object) in ["a", "b", "c"].into_iter().enumerate() {
            let at = Timestamp::from_second(i64::try_from(second).unwrap()).unwrap();
            store.writer().record_change("ada", &change(object), at).await.unwrap();
        }
        let first = store.reader().changes(None, 2).await.unwrap();
        let objects: Vec<&str> = first.changes.iter().map(|change| change.object.as_str()).collect();
        assert_eq!((objects, first.next), (vec!["c", "b"], Some(2)));
        assert_eq!(first.changes[0].at, "1970-01-01T00:00:02Z");
        let second = store.reader().changes(first.next, 2).await.unwrap();
        assert_eq!((second.changes.len(), second.changes[0].object.as_str(), second.next), (1, "a", None));
    }

    #[tokio::test]
    async fn oldest_records_beyond_the_limit_are_deleted() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let store = Store::open(&path).await.unwrap();
        let change = Change {
            method: "PUT".to_owned(),
            action: "create".to_owned(),
            kind: "scenario".to_owned(),
            object: "s".to_owned(),
        };
        let mut write = store.writer().begin().await.unwrap();
        for number in [1, 2, MAX_RECORDS] {
            sqlx::query("INSERT INTO audit VALUES (?, 0, 'ada', 'PUT', 'create', 'scenario', '')")
                .bind(number)
                .execute(&mut *write)
                .await
                .unwrap();
        }
        write.commit().await.unwrap();
        store.writer().record_change("ada", &change, Timestamp::UNIX_EPOCH).await.unwrap();
        let remaining: Vec<u64> =
            store.reader().changes(None, 10).await.unwrap().changes.iter().map(|change| change.number).collect();
        assert_eq!(remaining, [200_001, 200_000, 2]);
    }
}
