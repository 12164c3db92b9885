-- Links that were copied keep their scenario, and drafts belong to the clients that use them. Times are milliseconds since 1970 in
-- UTC.

-- 'link': kept because a link to it was copied; NULL: by hand, or not kept.
ALTER TABLE scenario ADD COLUMN kept_by TEXT CHECK (kept_by = 'link');
-- When it was last opened by its identifier.
ALTER TABLE scenario ADD COLUMN viewed_at_ms INTEGER;

-- A draft is evicted when the last client that uses it has newer ones.
CREATE TABLE draft_client (
    -- Hash of a cookie or an address.
    client            TEXT    NOT NULL,
    scenario_id       TEXT    NOT NULL REFERENCES scenario (id) ON DELETE CASCADE,
    used_at_ms        INTEGER NOT NULL,
    PRIMARY KEY (client, scenario_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX draft_client_by_scenario ON draft_client (scenario_id);

-- The list says which scenarios are kept by a link, and when a draft was used.
DROP VIEW scenario_shelf;
CREATE VIEW scenario_shelf AS
SELECT scenario.id, coalesce(title, made_title, scenario.id) AS name, note, tags_json, pinned_at_ms, kept, kept_by, model, cluster,
       scenario.created_at_ms, scenario.used_at_ms, scenario.deleted_at_ms, best_planner, best_iteration_s,
       coalesce(length(CAST(scenario.scenario_json AS BLOB)), length(CAST(deleted_scenario.scenario_json AS BLOB)), 0)
           + coalesce((SELECT sum(bytes) FROM outcome WHERE outcome.scenario_id = scenario.id), 0) AS bytes,
       deleted_scenario.id IS NOT NULL AS can_return
FROM scenario
LEFT JOIN deleted_scenario ON deleted_scenario.id = scenario.id
LEFT JOIN outcome ON outcome.rowid = (
    SELECT rowid FROM outcome WHERE scenario_id = scenario.id ORDER BY created_at_ms DESC LIMIT 1);
