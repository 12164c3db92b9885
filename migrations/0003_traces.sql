-- Traces of observed jobs. Times are nanoseconds since the trace's first start unless a name says otherwise.

CREATE TABLE trace (
    -- Address of the uploaded bytes.
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 52),
    name              TEXT    NOT NULL,
    note              TEXT,
    -- JSON, in alphabetical order.
    tags_json         TEXT    NOT NULL,
    -- Run that it belongs to. A run may be deleted while its traces stay, so that nothing refers to its row.
    run_id            TEXT,
    rank              INTEGER CHECK (rank >= 0),
    -- Plan that it is held against.
    scenario_id       TEXT,
    planner           TEXT,
    format            TEXT    NOT NULL,
    created_at_ms     INTEGER NOT NULL,
    -- A deleted trace comes back until it is purged; its row stays, so that its address answers "gone since".
    deleted_at_ms     INTEGER,
    raw_bytes         INTEGER NOT NULL CHECK (raw_bytes >= 0),
    -- Bytes of its columns in this file; 0 once purged.
    stored_bytes      INTEGER NOT NULL CHECK (stored_bytes >= 0),
    slices            INTEGER NOT NULL CHECK (slices >= 0),
    span_ns           INTEGER NOT NULL CHECK (span_ns >= 0),
    actions           INTEGER NOT NULL CHECK (actions >= 0),
    -- What was read and what was not, JSON; processes, lanes, steps, totals, levels, packed JSON. NULL once purged.
    report_json       TEXT,
    overview          BLOB,
    -- Annotated actions and counters, packed columns.
    action_columns    BLOB,
    counter_columns   BLOB,
    CHECK ((report_json IS NULL) = (overview IS NULL)),
    CHECK (overview IS NOT NULL OR deleted_at_ms IS NOT NULL)
) STRICT;

CREATE INDEX trace_by_age ON trace (created_at_ms DESC) WHERE deleted_at_ms IS NULL;
CREATE INDEX trace_by_run ON trace (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX trace_deleted ON trace (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;

-- Slices by level of detail, group of lanes and time.
CREATE TABLE trace_chunk (
    trace_id          TEXT    NOT NULL REFERENCES trace (id) ON DELETE CASCADE,
    -- 2 x level for slices at least as long as the level's width and shorter than the next one's;
    -- 2 x level + 1 for shorter ones, merged.
    tier              INTEGER NOT NULL CHECK (tier >= 0),
    part              INTEGER NOT NULL CHECK (part >= 0),
    first_lane        INTEGER NOT NULL,
    last_lane         INTEGER NOT NULL,
    -- First start and last end.
    start_ns          INTEGER NOT NULL,
    end_ns            INTEGER NOT NULL,
    -- Rows, and slices that they stand for.
    spans             INTEGER NOT NULL CHECK (spans > 0),
    slices            INTEGER NOT NULL CHECK (slices >= spans),
    -- Packed columns; last, so that choosing chunks does not read them.
    columns           BLOB    NOT NULL,
    -- What is known of single slices, packed; read when one is looked at.
    details           BLOB,
    PRIMARY KEY (trace_id, tier, part)
) STRICT;

-- Names of slices in blocks, packed JSON.
CREATE TABLE trace_names (
    trace_id          TEXT    NOT NULL REFERENCES trace (id) ON DELETE CASCADE,
    block             INTEGER NOT NULL CHECK (block >= 0),
    names             BLOB    NOT NULL,
    PRIMARY KEY (trace_id, block)
) STRICT;
