-- Datasets, scenarios and what planning them gave. Identifiers are content addresses: 52 characters of
-- lower-case base32. Times are milliseconds since 1970 in UTC.

CREATE TABLE dataset (
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 52),
    name              TEXT    NOT NULL,
    samples           INTEGER NOT NULL CHECK (samples > 0),
    -- Histograms as lists show them, JSON.
    text_tokens_json  TEXT    NOT NULL,
    images_json       TEXT,
    created_at_ms     INTEGER NOT NULL,
    -- A deleted dataset leaves its row, so that its address answers "gone since".
    deleted_at_ms     INTEGER,
    -- The dataset, JSON; last, so that lists do not read its pages.
    content_json      BLOB,
    CHECK ((deleted_at_ms IS NULL) = (content_json IS NOT NULL))
) STRICT;

CREATE INDEX dataset_by_age ON dataset (created_at_ms DESC) WHERE deleted_at_ms IS NULL;

CREATE TABLE scenario (
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 52),
    -- Beside the question, not part of it.
    title             TEXT,
    -- Drafts (0) are pruned by age, kept scenarios (1) stand in the list.
    kept              INTEGER NOT NULL CHECK (kept IN (0, 1)),
    created_at_ms     INTEGER NOT NULL,
    used_at_ms        INTEGER NOT NULL,
    deleted_at_ms     INTEGER,
    -- Canonical form without the title.
    scenario_json     TEXT,
    CHECK ((deleted_at_ms IS NULL) = (scenario_json IS NOT NULL))
) STRICT;

CREATE INDEX scenario_kept_by_age ON scenario (created_at_ms DESC) WHERE kept = 1 AND deleted_at_ms IS NULL;
CREATE INDEX scenario_drafts_by_use ON scenario (used_at_ms DESC) WHERE kept = 0 AND deleted_at_ms IS NULL;

CREATE TABLE outcome (
    scenario_id       TEXT    NOT NULL REFERENCES scenario (id) ON DELETE CASCADE,
    engine            TEXT    NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    -- Fastest planner, absent where none has a plan.
    best_planner      TEXT,
    best_iteration_s  REAL,
    -- Wall time of each planner, JSON.
    planning_ms_json  TEXT    NOT NULL,
    outcome_json      TEXT    NOT NULL,
    PRIMARY KEY (scenario_id, engine)
) STRICT;

CREATE TABLE timeline (
    scenario_id       TEXT    NOT NULL,
    engine            TEXT    NOT NULL,
    planner           TEXT    NOT NULL,
    iteration         INTEGER NOT NULL CHECK (iteration >= 0),
    -- The compact form that is also sent.
    encoded           BLOB    NOT NULL,
    PRIMARY KEY (scenario_id, engine, planner, iteration),
    FOREIGN KEY (scenario_id, engine) REFERENCES outcome (scenario_id, engine) ON DELETE CASCADE
) STRICT;
