//! Scenarios: drafts, kept ones, and the word that deleted ones leave.

use api::scenario::{BestOf, ScenarioLine, StoredScenario};
use jiff::Timestamp;
use planner::scenario::{PlannerKind, Scenario, ScenarioId};

use super::{Reader, StoreError, Writer};
use crate::clock::rfc3339;

const WHAT: &str = "scenario";
/// Drafts that are remembered; older ones go with their outcomes.
const DRAFTS: i64 = 500;
/// Shortest prefix that stands for a scenario: 50 bits, so that two never meet by chance.
pub(crate) const SHORTEST_PREFIX: usize = 10;

/// What a prefix stands for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// One scenario, perhaps deleted.
    One(String),
    /// Several, of which the first ten.
    Several(Vec<String>),
}

impl Writer {
    /// Stores a scenario as a draft. One that is stored already stays, except that a draft takes a new title.
    /// Says whether it is new.
    pub async fn store_scenario(
        &self,
        id: &ScenarioId,
        scenario: &Scenario,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut write = self.begin().await?;
        let known: Option<Option<i64>> = sqlx::query_scalar("SELECT deleted_at_ms FROM scenario WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *write)
            .await?;
        let is_new = known != Some(None);
        let stored = sqlx::query(
            "INSERT INTO scenario (id, title, kept, created_at_ms, used_at_ms, scenario_json)
             VALUES (?1, ?2, 0, ?3, ?3, ?4)
             ON CONFLICT (id) DO UPDATE SET
                 title = iif(kept = 1 AND deleted_at_ms IS NULL, title, coalesce(excluded.title, title)),
                 kept = iif(deleted_at_ms IS NULL, kept, 0),
                 created_at_ms = iif(deleted_at_ms IS NULL, created_at_ms, excluded.created_at_ms),
                 used_at_ms = excluded.used_at_ms,
                 deleted_at_ms = NULL,
                 scenario_json = excluded.scenario_json",
        )
        .bind(id.as_str())
        .bind(scenario.title.as_deref())
        .bind(now.as_millisecond())
        .bind(scenario.canonical())
        .execute(&mut *write)
        .await?
        .rows_affected();
        if stored != 1 {
            return Err(StoreError::missed(WHAT, id.as_str()));
        }
        if is_new {
            sqlx::query(
                "DELETE FROM scenario WHERE id IN (
                     SELECT id FROM scenario WHERE kept = 0 AND deleted_at_ms IS NULL
                     ORDER BY used_at_ms DESC, id LIMIT -1 OFFSET ?)",
            )
            .bind(DRAFTS)
            .execute(&mut *write)
            .await?;
        }
        write.commit().await?;
        Ok(is_new)
    }

    /// Puts a scenario into the list, under a new title where one is given.
    pub async fn keep_scenario(&self, id: &str, title: Option<&str>, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let kept = sqlx::query(
            "UPDATE scenario SET kept = 1, title = coalesce(?, title), used_at_ms = ?
             WHERE id = ? AND deleted_at_ms IS NULL",
        )
        .bind(title)
        .bind(now.as_millisecond())
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if kept != 1 {
            return Err(StoreError::missed(WHAT, id));
        }
        write.commit().await
    }

    /// Deletes a scenario with its outcomes, leaving word of when.
    pub async fn delete_scenario(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let deleted = sqlx::query(
            "UPDATE scenario SET deleted_at_ms = ?, scenario_json = NULL, title = NULL, kept = 0
             WHERE id = ? AND deleted_at_ms IS NULL",
        )
        .bind(now.as_millisecond())
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if deleted != 1 {
            return Err(StoreError::missed(WHAT, id));
        }
        // A scenario without outcomes is deleted just as well.
        sqlx::query("DELETE FROM outcome WHERE scenario_id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }
}

/// JSON, title, kept, creation and deletion time of a row.
type ScenarioRow = (Option<String>, Option<String>, bool, i64, Option<i64>);

/// Identifier, JSON, title, creation time, fastest planner and its time.
type LineRow = (String, String, Option<String>, i64, Option<String>, Option<f64>);

impl Reader {
    /// What a prefix (or a whole identifier) in lower case stands for.
    pub async fn resolve(&self, prefix: &str) -> Result<Resolved, StoreError> {
        // '{' follows 'z', so the range holds every identifier with that prefix.
        let mut found: Vec<String> =
            sqlx::query_scalar("SELECT id FROM scenario WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT 10")
                .bind(prefix)
                .fetch_all(self.pool())
                .await?;
        match found.len() {
            0 => Err(StoreError::missed(WHAT, prefix)),
            1 => Ok(Resolved::One(found.remove(0))),
            _ => Ok(Resolved::Several(found)),
        }
    }

    /// A stored scenario, by its whole identifier.
    pub async fn scenario(&self, id: &str) -> Result<StoredScenario, StoreError> {
        let (json, title, kept, created_at_ms, deleted_at_ms): ScenarioRow = sqlx::query_as(
            "SELECT scenario_json, title, kept, created_at_ms, deleted_at_ms FROM scenario WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(self.pool())
        .await?
        .ok_or_else(|| StoreError::missed(WHAT, id))?;
        if let Some(at) = deleted_at_ms {
            return Err(StoreError::Gone { what: WHAT, id: id.to_owned(), at: rfc3339(at) });
        }
        let scenario = Scenario { title, ..parse(json.as_deref().unwrap_or_default())? };
        let short = self.short(id).await?;
        Ok(StoredScenario { id: id.to_owned(), short, scenario, kept, created_at: rfc3339(created_at_ms) })
    }

    /// The list of kept scenarios, newest first, each with the fastest planner of its latest outcome.
    pub async fn kept_scenarios(&self) -> Result<Vec<ScenarioLine>, StoreError> {
        let rows: Vec<LineRow> = sqlx::query_as(
            "SELECT id, scenario_json, title, scenario.created_at_ms, best_planner, best_iteration_s
             FROM scenario LEFT JOIN outcome ON outcome.rowid = (
                 SELECT rowid FROM outcome WHERE scenario_id = scenario.id ORDER BY created_at_ms DESC LIMIT 1)
             WHERE kept = 1 AND deleted_at_ms IS NULL
             ORDER BY scenario.created_at_ms DESC, id LIMIT 1000",
        )
        .fetch_all(self.pool())
        .await?;
        let mut lines = Vec::with_capacity(rows.len());
        for (id, json, title, created_at_ms, planner, iteration_s) in rows {
            let scenario = parse(&json)?;
            let cluster = &scenario.cluster;
            let best = planner.zip(iteration_s).map(|(planner, iteration_s)| BestOf {
                planner: PlannerKind::from_id(&planner).map_or(planner, |kind| kind.title().to_owned()),
                iteration_s,
            });
            lines.push(ScenarioLine {
                short: self.short(&id).await?,
                id,
                title: title.unwrap_or_else(|| {
                    let devices = u64::from(cluster.nodes) * u64::from(cluster.devices_per_node);
                    format!("{} on {devices} x {}", scenario.model.name, cluster.name)
                }),
                model: scenario.model.name.clone(),
                cluster: format!("{} x {} {}", cluster.nodes, cluster.devices_per_node, cluster.name),
                best,
                created_at: rfc3339(created_at_ms),
            });
        }
        Ok(lines)
    }

    /// The shortest prefix that no other scenario shares: one character more than it shares with its
    /// neighbours in order.
    async fn short(&self, id: &str) -> Result<String, StoreError> {
        let (before, after): (Option<String>, Option<String>) = sqlx::query_as(
            "SELECT (SELECT max(id) FROM scenario WHERE id < ?1), (SELECT min(id) FROM scenario WHERE id > ?1)",
        )
        .bind(id)
        .fetch_one(self.pool())
        .await?;
        let shared = |other: &String| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let longest = before.iter().chain(&after).map(shared).max().unwrap_or(0);
        Ok(id[..id.len().min((longest + 1).max(SHORTEST_PREFIX))].to_owned())
    }
}

fn parse(json: &str) -> Result<Scenario, StoreError> {
    serde_json::from_str(json).map_err(|error| StoreError::damaged(WHAT, &error))
}
