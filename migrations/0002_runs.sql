-- Runs: the bytes of their logs as they came, which are the truth, and the points that were read from them. Times are
-- milliseconds since 1970 in UTC.

CREATE TABLE run (
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 16),
    name              TEXT    NOT NULL,
    note              TEXT,
    origin            TEXT    NOT NULL CHECK (origin IN ('live', 'imported', 'rehearsal')),
    -- What it is held against. Scenarios that went leave these as they are.
    scenario_id       TEXT,
    planner           TEXT,
    created_at_ms     INTEGER NOT NULL,
    -- When its last bytes came.
    updated_at_ms     INTEGER,
    ended_at_ms       INTEGER,
    exit_code         INTEGER,
    deleted_at_ms     INTEGER,
    -- Of the Idempotency-Key it was opened with, and of what was asked with it: SHA-256.
    key_hash          BLOB    UNIQUE CHECK (length(key_hash) = 32),
    asked_hash        BLOB    CHECK (length(asked_hash) = 32),
    -- Sum over its files.
    bytes             INTEGER NOT NULL DEFAULT 0 CHECK (bytes >= 0),
    -- Points are stored in rows 1 to this.
    points            INTEGER NOT NULL DEFAULT 0 CHECK (points >= 0),
    -- Of those, the last ones that are there only because the run ended: bytes that come after all read them anew.
    early_points      INTEGER NOT NULL DEFAULT 0 CHECK (early_points BETWEEN 0 AND points),
    -- How often that happened, and from which row on the last time.
    retakes           INTEGER NOT NULL DEFAULT 0,
    retaken_row       INTEGER NOT NULL DEFAULT 0,
    -- The point of the latest step while lines may still add to it, JSON; its row is the next one.
    open_point_json   TEXT,
    last_step         INTEGER,
    total_steps       INTEGER,
    -- Over the last points.
    median_step_s     REAL,
    -- When its last step came, and how much later it counts as stalled.
    step_at_ms        INTEGER,
    patience_ms       INTEGER NOT NULL DEFAULT 0,
    -- What was read of its log and what was not, JSON.
    report_json       TEXT    NOT NULL
) STRICT;

CREATE INDEX run_by_age ON run (created_at_ms DESC, id DESC) WHERE deleted_at_ms IS NULL;
CREATE INDEX run_deleted ON run (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL;

CREATE TABLE run_tag (
    run_id            TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    tag               TEXT    NOT NULL,
    PRIMARY KEY (run_id, tag)
) STRICT, WITHOUT ROWID;

CREATE INDEX run_tag_by_name ON run_tag (tag);

-- Tokens that may write a log: their SHA-256, never themselves.
CREATE TABLE run_token (
    run_id            TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    token_hash        BLOB    NOT NULL CHECK (length(token_hash) = 32),
    created_at_ms     INTEGER NOT NULL,
    PRIMARY KEY (run_id, token_hash)
) STRICT, WITHOUT ROWID;

-- A log that was rotated or written anew has more than one file.
CREATE TABLE run_file (
    run_id            TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    file              INTEGER NOT NULL CHECK (file >= 0),
    bytes             INTEGER NOT NULL CHECK (bytes >= 0),
    PRIMARY KEY (run_id, file)
) STRICT, WITHOUT ROWID;

-- The bytes of a file without gaps, in pieces.
CREATE TABLE run_chunk (
    run_id            TEXT    NOT NULL,
    file              INTEGER NOT NULL,
    -- First byte.
    start             INTEGER NOT NULL CHECK (start >= 0),
    bytes             INTEGER NOT NULL CHECK (bytes > 0),
    content           BLOB    NOT NULL CHECK (length(content) = bytes),
    PRIMARY KEY (run_id, file, start),
    FOREIGN KEY (run_id, file) REFERENCES run_file (run_id, file) ON DELETE CASCADE
) STRICT;

-- Written in the transaction that stores the bytes they are read from.
CREATE TABLE run_point (
    run_id            TEXT    NOT NULL REFERENCES run (id) ON DELETE CASCADE,
    row               INTEGER NOT NULL CHECK (row > 0),
    -- As it travels, JSON.
    point_json        TEXT    NOT NULL,
    PRIMARY KEY (run_id, row)
) STRICT, WITHOUT ROWID;
