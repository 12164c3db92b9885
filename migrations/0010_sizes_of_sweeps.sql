-- Of a sweep and its rows, so that lists need not read every byte of them. Sizes stand behind the JSON of their row, which the
-- indices spare.
ALTER TABLE sweep ADD COLUMN bytes INTEGER NOT NULL DEFAULT 0;
UPDATE sweep SET bytes = coalesce(length(CAST(sweep_json AS BLOB)), 0) + coalesce((
    SELECT sum(length(CAST(row_json AS BLOB))) FROM sweep_point WHERE sweep_id = sweep.id), 0);
CREATE INDEX sweep_by_size ON sweep (id, bytes);
CREATE INDEX sweep_deleted ON sweep (deleted_at_ms, bytes) WHERE deleted_at_ms IS NOT NULL;

-- Drafts that something is held against are not pruned.
CREATE INDEX run_by_scenario ON run (scenario_id) WHERE scenario_id IS NOT NULL;
CREATE INDEX trace_by_scenario ON trace (scenario_id) WHERE scenario_id IS NOT NULL;
