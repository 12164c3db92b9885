-- What people say of stored things, everywhere the same: name, note, tags, pinned. And a place for what is deleted but can come
-- back. Times are milliseconds since 1970 in UTC.

ALTER TABLE dataset ADD COLUMN note TEXT;
-- Sorted, JSON.
ALTER TABLE dataset ADD COLUMN tags_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE dataset ADD COLUMN pinned_at_ms INTEGER;
-- Of its content.
ALTER TABLE dataset ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE dataset SET bytes = coalesce(length(content_json), 0);

ALTER TABLE scenario ADD COLUMN note TEXT;
ALTER TABLE scenario ADD COLUMN tags_json TEXT NOT NULL DEFAULT '[]';
ALTER TABLE scenario ADD COLUMN pinned_at_ms INTEGER;
-- What lists show and search, taken from the JSON, so that they need not read it.
ALTER TABLE scenario ADD COLUMN model TEXT;
ALTER TABLE scenario ADD COLUMN cluster TEXT;
-- Shown where there is no title.
ALTER TABLE scenario ADD COLUMN made_title TEXT;
UPDATE scenario SET
    model = scenario_json ->> '$.model.name',
    cluster = (scenario_json ->> '$.cluster.nodes') || ' x ' || (scenario_json ->> '$.cluster.devices_per_node') || ' '
              || (scenario_json ->> '$.cluster.name'),
    made_title = (scenario_json ->> '$.model.name') || ' on '
                 || ((scenario_json ->> '$.cluster.nodes') * (scenario_json ->> '$.cluster.devices_per_node')) || ' x '
                 || (scenario_json ->> '$.cluster.name')
WHERE scenario_json IS NOT NULL AND json_valid(scenario_json);

ALTER TABLE run ADD COLUMN pinned_at_ms INTEGER;
ALTER TABLE trace ADD COLUMN pinned_at_ms INTEGER;
ALTER TABLE profile ADD COLUMN pinned_at_ms INTEGER;

-- What deletion took out of a row, until it is restored or its days are over.
CREATE TABLE deleted_scenario (
    id                TEXT    NOT NULL PRIMARY KEY REFERENCES scenario (id) ON DELETE CASCADE,
    scenario_json     TEXT    NOT NULL
) STRICT;

CREATE TABLE deleted_dataset (
    id                TEXT    NOT NULL PRIMARY KEY REFERENCES dataset (id) ON DELETE CASCADE,
    content_json      BLOB    NOT NULL
) STRICT;

-- Of the outcome and its timelines.
ALTER TABLE outcome ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE outcome SET bytes = length(CAST(outcome_json AS BLOB)) + coalesce((
    SELECT sum(length(encoded)) FROM timeline
    WHERE timeline.scenario_id = outcome.scenario_id AND timeline.engine = outcome.engine), 0);

-- Planners that found a plan, out of the outcome's JSON.
CREATE TABLE plan (
    scenario_id       TEXT    NOT NULL,
    engine            TEXT    NOT NULL,
    planner           TEXT    NOT NULL,
    -- Mean over the iterations.
    iteration_s       REAL    NOT NULL,
    PRIMARY KEY (scenario_id, engine, planner),
    FOREIGN KEY (scenario_id, engine) REFERENCES outcome (scenario_id, engine) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;

INSERT INTO plan (scenario_id, engine, planner, iteration_s)
SELECT scenario_id, engine, result.value ->> '$.planner', result.value ->> '$.answer.metrics.iteration_s'
FROM outcome, json_each(outcome_json, '$.results') AS result
WHERE json_valid(outcome_json) AND result.value ->> '$.answer.status' = 'planned'
  AND result.value ->> '$.answer.metrics.iteration_s' IS NOT NULL;

-- Scenarios as their list shows them, each with the fastest planner of its latest outcome.
CREATE VIEW scenario_shelf AS
SELECT scenario.id, coalesce(title, made_title, scenario.id) AS name, note, tags_json, pinned_at_ms, kept, model, cluster,
       scenario.created_at_ms, scenario.deleted_at_ms, best_planner, best_iteration_s,
       coalesce(length(CAST(scenario.scenario_json AS BLOB)), length(CAST(deleted_scenario.scenario_json AS BLOB)), 0)
           + coalesce((SELECT sum(bytes) FROM outcome WHERE outcome.scenario_id = scenario.id), 0) AS bytes,
       deleted_scenario.id IS NOT NULL AS can_return
FROM scenario
LEFT JOIN deleted_scenario ON deleted_scenario.id = scenario.id
LEFT JOIN outcome ON outcome.rowid = (
    SELECT rowid FROM outcome WHERE scenario_id = scenario.id ORDER BY created_at_ms DESC LIMIT 1);

-- Plans, each with what is said of its scenario.
CREATE VIEW plan_shelf AS
SELECT plan.scenario_id || ' ' || plan.engine || ' ' || plan.planner AS id, plan.scenario_id, plan.engine, plan.planner,
       plan.iteration_s, coalesce(title, made_title, scenario.id) AS name, note, tags_json, pinned_at_ms, kept, model, cluster,
       outcome.created_at_ms, scenario.deleted_at_ms, outcome.bytes
FROM plan
JOIN outcome ON outcome.scenario_id = plan.scenario_id AND outcome.engine = plan.engine
JOIN scenario ON scenario.id = plan.scenario_id;
