//! Scenarios: drafts, saved scenarios and tombstones.

use api::listing::Annotations;
use api::problem::ScenarioCandidate;
use api::scenario::{BestPlanner, PlanLine, PlanList, SavedSource, ScenarioLine, ScenarioList, StoredScenario};
use jiff::Timestamp;
use planner::outcome::ENGINE;
use planner::scenario::{PlannerKind, Scenario, ScenarioId};

use super::forget::PurgeStatements;
use super::objects::ObjectTable;
use super::{Kind, ListDefinition, Order, Reader, StoreError, Wanted, Writer, drafts};
use crate::client::Client;
use crate::clock::rfc3339;

pub(super) const SCENARIO: ObjectTable = ObjectTable {
    kind: Kind::Scenario,
    table: "scenario",
    name: "title",
    restorable: "id IN (SELECT id FROM deleted_scenario)",
};
/// Clears the content and deletes the outcomes.
const FORGETTING: PurgeStatements = PurgeStatements {
    take: "UPDATE scenario SET title = NULL, note = NULL, tags_json = '[]', pinned_at_ms = NULL, model = NULL,
             cluster = NULL, made_title = NULL, kept = 0
         WHERE id = (
             SELECT id FROM scenario WHERE deleted_at_ms < ? AND (
                 id IN (SELECT id FROM deleted_scenario) OR id IN (SELECT scenario_id FROM outcome) OR kept <> 0
                 OR title IS NOT NULL OR made_title IS NOT NULL)
             LIMIT 1)
         RETURNING id",
    with_it: &["DELETE FROM deleted_scenario WHERE id = ?", "DELETE FROM outcome WHERE scenario_id = ?"],
};
/// Minimum length of a prefix that identifies a scenario: 50 bits, so a random collision is very
/// unlikely.
pub(crate) const MIN_PREFIX: usize = 10;

/// List of saved scenarios.
pub(crate) const SCENARIOS: ListDefinition = ListDefinition {
    table: "scenario_shelf",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || coalesce(model, '') || ' ' || coalesce(cluster, '') || ' ' || id",
    tags: "tags_json",
    listed: "kept = 1",
    can_return: SCENARIO.restorable,
    stored: "SELECT coalesce(sum(bytes), 0) FROM scenario_shelf WHERE deleted_at_ms IS NULL",
    deleted: "SELECT coalesce(sum(bytes), 0) FROM scenario_shelf WHERE deleted_at_ms IS NOT NULL AND can_return",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "model", key: "lower(coalesce(model, ''))" },
        Order { name: "cluster", key: "lower(coalesce(cluster, ''))" },
        Order { name: "planner", key: "coalesce(best_planner, '')" },
        // Scenarios with no plan are sorted last.
        Order { name: "time", key: "coalesce(best_iteration_s, 1e300)" },
    ],
};

/// List of drafts, most recently used first.
pub(crate) const DRAFTS: ListDefinition = ListDefinition {
    listed: "kept = 0",
    stored: "0",
    deleted: "0",
    orders: &[Order { name: "used", key: "used_at_ms" }, Order { name: "name", key: "lower(name)" }],
    ..SCENARIOS
};

/// List of plans for all scenarios, including drafts.
pub(crate) const PLANS: ListDefinition = ListDefinition {
    table: "plan_shelf",
    text: "name || ' ' || coalesce(note, '') || ' ' || tags_json || ' ' || coalesce(model, '') || ' ' || coalesce(cluster, '') || ' ' || planner || ' ' || engine || ' ' || scenario_id",
    tags: "tags_json",
    listed: "1",
    can_return: "0",
    stored: "SELECT coalesce(sum(bytes), 0) FROM outcome",
    deleted: "SELECT coalesce(sum(outcome.bytes), 0) FROM outcome JOIN deleted_scenario ON deleted_scenario.id = scenario_id",
    orders: &[
        Order { name: "created", key: "created_at_ms" },
        Order { name: "name", key: "lower(name)" },
        Order { name: "planner", key: "planner" },
        Order { name: "time", key: "iteration_s" },
        Order { name: "engine", key: "engine" },
    ],
};

/// Result of a prefix lookup.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Resolved {
    /// One match, possibly deleted.
    Single(String),
    /// Several matches; at most the first ten.
    Several(Vec<String>),
}

impl Writer {
    /// Stores a scenario as a client's draft and returns true if it is new. An existing scenario is
    /// unchanged, except that a draft receives the new title.
    ///
    /// # Errors
    /// The database is full, or the draft limit is reached.
    pub async fn store_scenario(
        &self,
        id: &ScenarioId,
        scenario: &Scenario,
        client: &Client,
        now: Timestamp,
    ) -> Result<bool, StoreError> {
        let mut write = self.begin().await?;
        let known: Option<Option<i64>> = sqlx::query_scalar("SELECT deleted_at_ms FROM scenario WHERE id = ?")
            .bind(id.as_str())
            .fetch_optional(&mut *write)
            .await?;
        let is_new = known != Some(None);
        let canonical = scenario.canonical();
        if is_new {
            write.check_capacity(canonical.len()).await?;
        }
        let stored = sqlx::query(
            "INSERT INTO scenario (id, title, kept, created_at_ms, used_at_ms, scenario_json, model, cluster, made_title)
             VALUES (?1, ?2, 0, ?3, ?3, ?4, ?5, ?6, ?7)
             ON CONFLICT (id) DO UPDATE SET
                 title = iif(kept = 1 AND deleted_at_ms IS NULL, title, coalesce(excluded.title, title)),
                 -- One that is pinned is kept, or it would be in no list.
                 kept = iif(deleted_at_ms IS NULL, kept, pinned_at_ms IS NOT NULL),
                 kept_by = iif(deleted_at_ms IS NULL, kept_by, NULL),
                 created_at_ms = iif(deleted_at_ms IS NULL, created_at_ms, excluded.created_at_ms),
                 model = excluded.model,
                 cluster = excluded.cluster,
                 made_title = excluded.made_title,
                 used_at_ms = excluded.used_at_ms,
                 deleted_at_ms = NULL,
                 scenario_json = excluded.scenario_json",
        )
        .bind(id.as_str())
        .bind(scenario.title.as_deref())
        .bind(now.as_millisecond())
        .bind(canonical)
        .bind(&scenario.model.name)
        .bind(cluster_label(scenario))
        .bind(default_title(scenario))
        .execute(&mut *write)
        .await?
        .rows_affected();
        if stored != 1 {
            return Err(SCENARIO.missed(id.as_str()));
        }
        // Storing a deleted scenario also restores the outcomes.
        sqlx::query("DELETE FROM deleted_scenario WHERE id = ?").bind(id.as_str()).execute(&mut *write).await?;
        drafts::use_draft(&mut write, id.as_str(), client, now).await?;
        if is_new {
            drafts::evict_drafts(&mut write, client, now, drafts::LIMITS).await?;
        }
        write.commit().await?;
        Ok(is_new)
    }

    /// Saves a scenario to the list, with a new title if given. A link does not change a scenario
    /// that a user has saved.
    pub async fn keep_scenario(
        &self,
        id: &str,
        title: Option<&str>,
        source: Option<SavedSource>,
        now: Timestamp,
    ) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let updated = sqlx::query(
            "UPDATE scenario SET kept = 1, kept_by = iif(kept = 1 AND kept_by IS NULL, NULL, ?1), used_at_ms = ?3,
                 title = iif(kept = 1 AND kept_by IS NULL AND ?1 IS NOT NULL, title, coalesce(?2, title))
             WHERE id = ?4 AND deleted_at_ms IS NULL",
        )
        .bind(source.map(SavedSource::id))
        .bind(title)
        .bind(now.as_millisecond())
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if updated != 1 {
            return Err(SCENARIO.missed(id));
        }
        write.commit().await
    }

    /// Changes name, note, tags and pin. Pinning also saves the scenario.
    pub async fn change_scenario(&self, id: &str, annotations: &Annotations, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        SCENARIO.change(&mut write, id, annotations, now).await?;
        if annotations.pinned == Some(true) {
            sqlx::query("UPDATE scenario SET kept = 1, kept_by = NULL WHERE id = ?")
                .bind(id)
                .execute(&mut *write)
                .await?;
        }
        write.commit().await
    }

    /// Restores a deleted scenario with the outcomes. An active scenario is unchanged.
    pub async fn restore_scenario(&self, id: &str) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        let content =
            ", scenario_json = (SELECT scenario_json FROM deleted_scenario WHERE deleted_scenario.id = scenario.id)";
        SCENARIO.restore(&mut write, id, content).await?;
        sqlx::query("DELETE FROM deleted_scenario WHERE id = ?").bind(id).execute(&mut *write).await?;
        write.commit().await
    }

    /// Purges scenarios deleted before the given time. Identifier and deletion time remain. Returns
    /// the count.
    pub async fn forget_scenarios(&self, deleted_before: Timestamp) -> Result<u64, StoreError> {
        self.forget_all(&FORGETTING, deleted_before).await
    }

    /// Marks a scenario as deleted. [`Writer::forget_scenarios`] deletes content and outcomes.
    pub async fn delete_scenario(&self, id: &str, now: Timestamp) -> Result<(), StoreError> {
        let mut write = self.begin().await?;
        sqlx::query(
            "INSERT OR REPLACE INTO deleted_scenario (id, scenario_json)
             SELECT id, scenario_json FROM scenario WHERE id = ? AND deleted_at_ms IS NULL",
        )
        .bind(id)
        .execute(&mut *write)
        .await?;
        let deleted = sqlx::query(
            "UPDATE scenario SET deleted_at_ms = ?, scenario_json = NULL WHERE id = ? AND deleted_at_ms IS NULL",
        )
        .bind(now.as_millisecond())
        .bind(id)
        .execute(&mut *write)
        .await?
        .rows_affected();
        if deleted != 1 {
            return Err(SCENARIO.missed(id));
        }
        write.commit().await
    }
}

#[derive(sqlx::FromRow)]
struct ScenarioRow {
    scenario_json: Option<String>,
    title: Option<String>,
    kept: bool,
    kept_by: Option<String>,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
}

#[derive(sqlx::FromRow)]
struct LineRow {
    id: String,
    name: String,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
    kept_by: Option<String>,
    model: Option<String>,
    cluster: Option<String>,
    created_at_ms: i64,
    deleted_at_ms: Option<i64>,
    best_planner: Option<String>,
    best_iteration_s: Option<f64>,
    bytes: i64,
    failure: Option<String>,
}

#[derive(sqlx::FromRow)]
struct PlanRow {
    id: String,
    scenario_id: String,
    name: String,
    note: Option<String>,
    tags_json: String,
    pinned_at_ms: Option<i64>,
    model: Option<String>,
    cluster: Option<String>,
    planner: String,
    engine: String,
    iteration_s: f64,
    created_at_ms: i64,
    layout_json: Option<String>,
}

/// SQL for rows in the plan list by identifier, with the layout from the outcome. Large outcomes
/// are not parsed, to keep the list fast.
const PLAN_ROWS: &str = "
SELECT plan_shelf.*, (
    SELECT result.value -> '$.answer.layout'
    FROM outcome, json_each(CASE WHEN json_valid(outcome_json) THEN outcome_json ELSE '{}' END, '$.results') AS result
    WHERE outcome.scenario_id = plan_shelf.scenario_id AND outcome.engine = plan_shelf.engine AND octet_length(outcome_json) < 1000000
      AND result.value ->> '$.planner' = plan_shelf.planner
) AS layout_json
FROM plan_shelf WHERE id IN (SELECT value FROM json_each(?))";

impl Reader {
    /// Resolves a lowercase prefix or a complete identifier.
    pub async fn resolve(&self, prefix: &str) -> Result<Resolved, StoreError> {
        // '{' follows 'z' in ASCII, so the range includes all identifiers with this prefix.
        let mut found: Vec<String> =
            sqlx::query_scalar("SELECT id FROM scenario WHERE id >= ?1 AND id < ?1 || '{' ORDER BY id LIMIT 10")
                .bind(prefix)
                .fetch_all(self.pool())
                .await?;
        match found.len() {
            0 => Err(SCENARIO.missed(prefix)),
            1 => Ok(Resolved::Single(found.remove(0))),
            _ => Ok(Resolved::Several(found)),
        }
    }

    /// Returns a stored scenario by complete identifier.
    pub async fn scenario(&self, id: &str) -> Result<StoredScenario, StoreError> {
        let row: ScenarioRow = sqlx::query_as(
            "SELECT scenario_json, title, kept, kept_by, created_at_ms, deleted_at_ms, note, tags_json, pinned_at_ms
             FROM scenario WHERE id = ?",
        )
        .bind(id)
        .fetch_optional(self.pool())
        .await?
        .ok_or_else(|| SCENARIO.missed(id))?;
        if let Some(at) = row.deleted_at_ms {
            return Err(SCENARIO.gone(self.pool(), id, at).await);
        }
        let scenario = Scenario { title: row.title, ..parse(row.scenario_json.as_deref().unwrap_or_default())? };
        let short = self.short(id).await?;
        Ok(StoredScenario {
            id: id.to_owned(),
            short,
            scenario,
            kept: row.kept,
            source: row.kept_by.as_deref().and_then(SavedSource::from_id),
            created_at: rfc3339(row.created_at_ms),
            note: row.note,
            tags: parse_strings(&row.tags_json)?,
            pinned: row.pinned_at_ms.is_some(),
        })
    }

    /// Returns the scenarios that match an ambiguous prefix.
    pub async fn candidates(&self, ids: &[String]) -> Result<Vec<ScenarioCandidate>, StoreError> {
        let mut candidates = Vec::with_capacity(ids.len());
        for id in ids {
            let row: Option<(String, i64, Option<i64>)> =
                sqlx::query_as("SELECT name, created_at_ms, deleted_at_ms FROM scenario_shelf WHERE id = ?")
                    .bind(id)
                    .fetch_optional(self.pool())
                    .await?;
            let Some((title, created_at_ms, deleted_at_ms)) = row else { continue };
            candidates.push(ScenarioCandidate {
                id: id.clone(),
                short: self.short(id).await?,
                title,
                created_at: rfc3339(created_at_ms),
                deleted_at: deleted_at_ms.map(rfc3339),
            });
        }
        Ok(candidates)
    }

    /// Returns a page of the saved scenarios, each with the best planner in the latest outcome.
    pub(crate) async fn scenarios(&self, wanted: &Wanted) -> Result<ScenarioList, StoreError> {
        self.scenario_page(&SCENARIOS, wanted).await
    }

    /// Returns a page of a client's drafts, each with the best planner in the latest outcome.
    pub(crate) async fn drafts(&self, client: &Client, mut wanted: Wanted) -> Result<ScenarioList, StoreError> {
        let client_filter = "id IN (SELECT scenario_id FROM draft_client WHERE client = ".to_owned();
        wanted.filters.push((client_filter, client.as_str().to_owned(), ")"));
        self.scenario_page(&DRAFTS, &wanted).await
    }

    async fn scenario_page(&self, definition: &ListDefinition, wanted: &Wanted) -> Result<ScenarioList, StoreError> {
        let found = self.page(definition, wanted).await?;
        let rows: Vec<LineRow> =
            sqlx::query_as("SELECT *, (SELECT failure FROM job WHERE scenario_id = scenario_shelf.id) AS failure FROM scenario_shelf WHERE id IN (SELECT value FROM json_each(?))")
                .bind(found.json())
                .fetch_all(self.pool())
                .await?;
        let mut scenarios = Vec::with_capacity(rows.len());
        for row in found.in_order(rows, |row| &row.id) {
            let best = row.best_planner.zip(row.best_iteration_s).map(|(planner, iteration_s)| BestPlanner {
                planner: PlannerKind::from_id(&planner).map_or(planner, |kind| kind.title().to_owned()),
                iteration_s,
            });
            scenarios.push(ScenarioLine {
                short: self.short(&row.id).await?,
                id: row.id,
                title: row.name,
                model: row.model.unwrap_or_default(),
                cluster: row.cluster.unwrap_or_default(),
                best,
                source: row.kept_by.as_deref().and_then(SavedSource::from_id),
                created_at: rfc3339(row.created_at_ms),
                note: row.note,
                tags: parse_strings(&row.tags_json)?,
                pinned: row.pinned_at_ms.is_some(),
                deleted_at: row.deleted_at_ms.map(rfc3339),
                bytes: row.bytes.unsigned_abs(),
                failure: row.failure,
            });
        }
        Ok(ScenarioList { scenarios, page: found.page })
    }

    /// Returns a page of plans for all scenarios.
    pub(crate) async fn plans(&self, wanted: &Wanted) -> Result<PlanList, StoreError> {
        let found = self.page(&PLANS, wanted).await?;
        let rows: Vec<PlanRow> = sqlx::query_as(PLAN_ROWS).bind(found.json()).fetch_all(self.pool()).await?;
        let mut plans = Vec::with_capacity(rows.len());
        for row in found.in_order(rows, |row| &row.id) {
            let planner = PlannerKind::from_id(&row.planner);
            plans.push(PlanLine {
                short: self.short(&row.scenario_id).await?,
                id: row.id,
                scenario: row.scenario_id,
                title: row.name,
                note: row.note,
                tags: parse_strings(&row.tags_json)?,
                pinned: row.pinned_at_ms.is_some(),
                model: row.model.unwrap_or_default(),
                cluster: row.cluster.unwrap_or_default(),
                planner,
                planner_title: planner.map_or(row.planner, |planner| planner.title().to_owned()),
                layout: row.layout_json.and_then(|json| serde_json::from_str(&json).ok()),
                engine: row.engine,
                iteration_s: row.iteration_s,
                created_at: rfc3339(row.created_at_ms),
            });
        }
        Ok(PlanList { plans, current_engine: ENGINE.to_owned(), page: found.page })
    }

    /// Returns the shortest unique prefix: one character longer than the common prefix with the
    /// neighbors in sort order.
    async fn short(&self, id: &str) -> Result<String, StoreError> {
        let (before, after): (Option<String>, Option<String>) = sqlx::query_as(
            "SELECT (SELECT max(id) FROM scenario WHERE id < ?1), (SELECT min(id) FROM scenario WHERE id > ?1)",
        )
        .bind(id)
        .fetch_one(self.pool())
        .await?;
        let shared = |other: &String| id.bytes().zip(other.bytes()).take_while(|(a, b)| a == b).count();
        let max_shared = before.iter().chain(&after).map(shared).max().unwrap_or(0);
        Ok(id[..id.len().min((max_shared + 1).max(MIN_PREFIX))].to_owned())
    }
}

fn parse(json: &str) -> Result<Scenario, StoreError> {
    serde_json::from_str(json).map_err(|error| SCENARIO.damaged(&error))
}

fn parse_strings(json: &str) -> Result<Vec<String>, StoreError> {
    serde_json::from_str(json).map_err(|error| SCENARIO.damaged(&error))
}

/// Returns a cluster description, for example "4 x 8 A100-80GB".
fn cluster_label(scenario: &Scenario) -> String {
    let cluster = &scenario.cluster;
    format!("{} x {} {}", cluster.nodes, cluster.devices_per_node, cluster.name)
}

/// Returns the default title.
fn default_title(scenario: &Scenario) -> String {
    let cluster = &scenario.cluster;
    let devices = u64::from(cluster.nodes) * u64::from(cluster.devices_per_node);
    format!("{} on {devices} × {}", scenario.model.name, cluster.name)
}
