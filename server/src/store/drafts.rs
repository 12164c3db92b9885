//! Drafts: usage by clients, views, and eviction.
//!
//! A draft is in use while a job, a run or a trace refers to it, and for 30 days after it was
//! opened by its identifier. Drafts in use are never evicted. For all other drafts there is a quota
//! per client, and a draft is deleted when the last client releases it. The total is also limited.
//! Beyond the total, a client evicts drafts that were unused for 30 days, then drafts of the client
//! itself; otherwise the new draft is rejected.

use jiff::{SignedDuration, Timestamp};

use super::{StoreError, Write, Writer};
use crate::client::Client;

/// Limits for drafts that are not in use.
#[derive(Debug, Clone, Copy)]
pub(super) struct DraftLimits {
    /// Per client, drafts planned within [`RECENT`].
    planned: i64,
    /// Per client, all other drafts.
    others: i64,
    /// Drafts of all clients, including drafts in use.
    total: i64,
}

/// Limits in production.
pub(super) const LIMITS: DraftLimits = DraftLimits { planned: 2_000, others: 500, total: 20_000 };
/// Age at which a view, a plan or a use stops protecting a draft from eviction.
const RECENT: SignedDuration = SignedDuration::from_hours(30 * 24);
/// Minimum interval between two stored views. It avoids a write on each read.
const VIEW_STEP: SignedDuration = SignedDuration::from_hours(1);

/// SQL condition: a row of `scenario` is a draft that is not in use. `?1` is the earliest time of a
/// valid view.
const UNUSED: &str = "scenario.kept = 0 AND scenario.deleted_at_ms IS NULL AND coalesce(scenario.viewed_at_ms, 0) < ?1
     AND NOT EXISTS (SELECT 1 FROM job WHERE job.scenario_id = scenario.id)
     AND NOT EXISTS (SELECT 1 FROM run WHERE run.scenario_id = scenario.id AND run.name <> '')
     AND NOT EXISTS (SELECT 1 FROM trace WHERE trace.scenario_id = scenario.id AND trace.overview IS NOT NULL)";
/// SQL condition: the scenario was planned since `?1`.
const PLANNED: &str =
    "EXISTS (SELECT 1 FROM outcome WHERE outcome.scenario_id = scenario.id AND outcome.created_at_ms >= ?1)";

impl Writer {
    /// Stores the time at which a scenario was opened.
    pub async fn view_scenario(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let before = now.checked_sub(VIEW_STEP).unwrap_or(Timestamp::MIN);
        let mut write = self.begin().await?;
        sqlx::query("UPDATE scenario SET viewed_at_ms = ?1 WHERE id = ?2 AND coalesce(viewed_at_ms, 0) < ?3")
            .bind(now.as_millisecond())
            .bind(id)
            .bind(before.as_millisecond())
            .execute(&mut *write)
            .await?;
        write.commit().await
    }

    /// Removes a scenario from the list of saved scenarios and makes it a draft of the client.
    /// Drafts are unchanged.
    pub async fn unkeep_scenario(&self, id: &str, client: &Client, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        super::scenarios::SCENARIO.present(&mut write, id).await?;
        sqlx::query(
            "UPDATE scenario SET kept = 0, kept_by = NULL, pinned_at_ms = NULL, used_at_ms = ?2, viewed_at_ms = ?2 WHERE id = ?1",
        )
        .bind(id)
        .bind(now.as_millisecond())
        .execute(&mut *write)
        .await?;
        use_draft(&mut write, id, client, now).await?;
        write.commit().await
    }
}

impl super::Reader {
    /// Returns true if the last stored view is old enough to store a new view.
    pub async fn is_view_due(&self, id: &str, now: Timestamp) -> Result<bool, StoreError> {
        let before = now.checked_sub(VIEW_STEP).unwrap_or(Timestamp::MIN);
        let viewed: Option<Option<i64>> = sqlx::query_scalar("SELECT viewed_at_ms FROM scenario WHERE id = ?")
            .bind(id)
            .fetch_optional(self.pool())
            .await?;
        Ok(viewed.flatten().unwrap_or(0) < before.as_millisecond())
    }
}

/// Stores that a client uses a draft.
pub(super) async fn use_draft(write: &mut Write, id: &str, client: &Client, now: Timestamp) -> Result<(), StoreError> {
    sqlx::query(
        "INSERT INTO draft_client (client, scenario_id, used_at_ms) VALUES (?1, ?2, ?3)
         ON CONFLICT (client, scenario_id) DO UPDATE SET used_at_ms = excluded.used_at_ms",
    )
    .bind(client.as_str())
    .bind(id)
    .bind(now.as_millisecond())
    .execute(&mut **write)
    .await?;
    Ok(())
}

/// Evicts drafts of a client beyond the quotas, and other drafts beyond the total. Called when the
/// client stores a draft.
///
/// # Errors
/// The total is exceeded, and all drafts are in use or belong to other clients.
pub(super) async fn evict_drafts(
    write: &mut Write,
    client: &Client,
    now: Timestamp,
    limits: DraftLimits,
) -> Result<(), StoreError> {
    let since = now.checked_sub(RECENT).unwrap_or(Timestamp::MIN).as_millisecond();
    let client_drafts: i64 = sqlx::query_scalar("SELECT count(*) FROM draft_client WHERE client = ?")
        .bind(client.as_str())
        .fetch_one(&mut **write)
        .await?;
    if client_drafts > limits.others.min(limits.planned) {
        let mut released = release(write, client, since, &format!("NOT {PLANNED}"), limits.others).await?;
        released.extend(release(write, client, since, PLANNED, limits.planned).await?);
        evict(write, &released, since).await?;
    }
    let drafts = count(write).await?;
    if drafts <= limits.total {
        return Ok(());
    }
    let old = format!(
        "SELECT scenario.id FROM scenario WHERE scenario.used_at_ms < ?1 AND {UNUSED} ORDER BY scenario.used_at_ms LIMIT ?2"
    );
    let ids: Vec<String> = sqlx::query_scalar(sqlx::AssertSqlSafe(old))
        .bind(since)
        .bind(drafts - limits.total)
        .fetch_all(&mut **write)
        .await?;
    for id in &ids {
        sqlx::query("DELETE FROM draft_client WHERE scenario_id = ?").bind(id).execute(&mut **write).await?;
    }
    evict(write, &ids, since).await?;
    let drafts = count(write).await?;
    if drafts <= limits.total {
        return Ok(());
    }
    let unused_query = format!(
        "SELECT count(*) FROM draft_client AS mine JOIN scenario ON scenario.id = mine.scenario_id WHERE mine.client = ?2 AND {UNUSED}"
    );
    let unused: i64 = sqlx::query_scalar(sqlx::AssertSqlSafe(unused_query))
        .bind(since)
        .bind(client.as_str())
        .fetch_one(&mut **write)
        .await?;
    // The newest draft was stored by the present request.
    let newest = (unused - (drafts - limits.total)).max(1);
    let released = release(write, client, since, "1", newest).await?;
    evict(write, &released, since).await?;
    if count(write).await? > limits.total {
        return Err(StoreError::Drafts { total: limits.total.unsigned_abs() });
    }
    Ok(())
}

/// Releases a client's unused drafts that match the condition, except the `newest`. Returns the
/// released identifiers.
async fn release(
    write: &mut Write,
    client: &Client,
    since: i64,
    condition: &str,
    newest: i64,
) -> Result<Vec<String>, StoreError> {
    let release = format!(
        "DELETE FROM draft_client WHERE client = ?2 AND scenario_id IN (
             SELECT scenario.id FROM draft_client AS mine JOIN scenario ON scenario.id = mine.scenario_id
             WHERE mine.client = ?2 AND {UNUSED} AND {condition}
             ORDER BY mine.used_at_ms DESC, scenario.id LIMIT -1 OFFSET ?3)
         RETURNING scenario_id"
    );
    let released = sqlx::query_scalar(sqlx::AssertSqlSafe(release))
        .bind(since)
        .bind(client.as_str())
        .bind(newest)
        .fetch_all(&mut **write)
        .await?;
    Ok(released)
}

/// Deletes the given drafts if they are not in use and have been released by all clients.
async fn evict(write: &mut Write, ids: &[String], since: i64) -> Result<(), StoreError> {
    let evict = format!(
        "DELETE FROM scenario WHERE id = ?2 AND {UNUSED}
             AND NOT EXISTS (SELECT 1 FROM draft_client WHERE draft_client.scenario_id = scenario.id)"
    );
    for id in ids {
        sqlx::query(sqlx::AssertSqlSafe(evict.clone())).bind(since).bind(id).execute(&mut **write).await?;
    }
    Ok(())
}

async fn count(write: &mut Write) -> Result<i64, StoreError> {
    let count = sqlx::query_scalar("SELECT count(*) FROM scenario WHERE kept = 0 AND deleted_at_ms IS NULL");
    Ok(count.fetch_one(&mut **write).await?)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Store;

    const DAY_MS: i64 = 24 * 3600 * 1000;

    fn day(day: i64) -> Timestamp {
        Timestamp::from_millisecond(1_767_225_600_000 + day * DAY_MS).unwrap()
    }

    /// Stores a draft named `id` and applies the limits.
    async fn store(
        store: &Store,
        id: &str,
        client: &str,
        at: Timestamp,
        limits: DraftLimits,
    ) -> Result<(), StoreError> {
        let client = Client::from_cookie(client);
        let mut write = store.writer().begin().await?;
        sqlx::query(
            "INSERT INTO scenario (id, kept, created_at_ms, used_at_ms, scenario_json) VALUES (?1, 0, ?2, ?2, '{}')
             ON CONFLICT (id) DO UPDATE SET used_at_ms = excluded.used_at_ms",
        )
        .bind(address(id))
        .bind(at.as_millisecond())
        .execute(&mut *write)
        .await?;
        use_draft(&mut write, &address(id), &client, at).await?;
        evict_drafts(&mut write, &client, at, limits).await?;
        write.commit().await
    }

    fn address(id: &str) -> String {
        format!("{id:a<52}")
    }

    async fn there(store: &Store) -> Vec<String> {
        let ids: Vec<String> =
            sqlx::query_scalar("SELECT id FROM scenario ORDER BY id").fetch_all(store.reader().pool()).await.unwrap();
        ids.iter().map(|id| id.trim_end_matches('a').to_owned()).collect()
    }

    async fn run(store: &Store, statement: &'static str, id: &str) {
        let mut write = store.writer().begin().await.unwrap();
        sqlx::query(statement).bind(address(id)).execute(&mut *write).await.unwrap();
        write.commit().await.unwrap();
    }

    async fn opened() -> (tempfile::TempDir, Store) {
        let folder = tempfile::tempdir().unwrap();
        let store = Store::open(&folder.path().join("planscope.db")).await.unwrap();
        (folder, store)
    }

    #[tokio::test]
    async fn client_evicts_its_drafts_only() {
        let (_folder, all) = opened().await;
        let limits = DraftLimits { planned: 2, others: 2, total: 100 };
        for (minute, id) in (0..).zip(["x1", "x2", "both"]) {
            let at = day(0).checked_add(SignedDuration::from_mins(minute)).unwrap();
            store(&all, id, "first", at, limits).await.unwrap();
        }
        // The quota is two, so the oldest draft of the first client was evicted.
        assert_eq!(there(&all).await, ["both", "x2"]);
        for (hour, id) in (0..).zip(["both", "y1", "y2", "y3"]) {
            let at = day(1).checked_add(SignedDuration::from_hours(hour)).unwrap();
            store(&all, id, "second", at, limits).await.unwrap();
        }
        // The second client released "both" and "y1". "both" is still in use by the first client.
        assert_eq!(there(&all).await, ["both", "x2", "y2", "y3"]);
    }

    #[tokio::test]
    async fn views_protect_drafts_for_thirty_days_and_plans_have_a_quota() {
        let (_folder, all) = opened().await;
        let limits = DraftLimits { planned: 1, others: 1, total: 100 };
        store(&all, "seen", "one", day(0), limits).await.unwrap();
        all.writer().view_scenario(&address("seen"), day(0)).await.unwrap();
        assert!(!all.reader().is_view_due(&address("seen"), day(0)).await.unwrap());
        assert!(all.reader().is_view_due(&address("seen"), day(1)).await.unwrap());
        store(&all, "plan", "one", day(1), limits).await.unwrap();
        run(
            &all,
            "INSERT INTO outcome (scenario_id, engine, created_at_ms, planning_ms_json, outcome_json)
             VALUES (?, 'e', 1767312000000, '[]', '{}')",
            "plan",
        )
        .await;
        for (id, at) in [("b1", 2), ("b2", 3)] {
            store(&all, id, "one", day(at), limits).await.unwrap();
        }
        assert_eq!(there(&all).await, ["b2", "plan", "seen"]);
        // A month later, view and plan protect no draft, so only the newest remains.
        store(&all, "b3", "one", day(40), limits).await.unwrap();
        assert_eq!(there(&all).await, ["b3"]);
    }

    #[tokio::test]
    async fn jobs_and_runs_protect_for_as_long_as_they_are_there() {
        let (_folder, all) = opened().await;
        let limits = DraftLimits { planned: 1, others: 1, total: 100 };
        for (at, id) in (0..).zip(["job", "run"]) {
            store(&all, id, "one", day(at), limits).await.unwrap();
            let statement = match id {
                "job" => "INSERT INTO job (id, scenario_id, created_at_ms) VALUES ('j', ?, 0)",
                _ => {
                    "INSERT INTO run (id, name, origin, scenario_id, created_at_ms, report_json)
                     VALUES ('a-run-of-16-char', 'a run', 'live', ?, 0, '{}')"
                }
            };
            run(&all, statement, id).await;
        }
        for (at, id) in (100..).zip(["b1", "b2"]) {
            store(&all, id, "one", day(at), limits).await.unwrap();
        }
        assert_eq!(there(&all).await, ["b2", "job", "run"]);
        run(&all, "DELETE FROM job WHERE scenario_id = ?", "job").await;
        store(&all, "b3", "one", day(103), limits).await.unwrap();
        assert_eq!(there(&all).await, ["b3", "run"]);
    }

    #[tokio::test]
    async fn total_limit_spares_drafts_in_use() {
        let (_folder, all) = opened().await;
        let limits = DraftLimits { planned: 10, others: 10, total: 3 };
        store(&all, "old", "first", day(0), limits).await.unwrap();
        store(&all, "x1", "first", day(39), limits).await.unwrap();
        store(&all, "y1", "second", day(40), limits).await.unwrap();
        // Beyond the total of three, a draft unused for a month is evicted first.
        store(&all, "y2", "second", day(41), limits).await.unwrap();
        assert_eq!(there(&all).await, ["x1", "y1", "y2"]);
        // Then a draft of the client itself is evicted.
        store(&all, "y3", "second", day(42), limits).await.unwrap();
        assert_eq!(there(&all).await, ["x1", "y2", "y3"]);
        // A client with no unused drafts is rejected, and nothing is stored.
        let error = store(&all, "z1", "third", day(42), limits).await.unwrap_err();
        assert!(matches!(error, StoreError::Drafts { total: 3 }), "{error}");
        assert_eq!(there(&all).await, ["x1", "y2", "y3"]);
    }
}
