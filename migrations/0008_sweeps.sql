-- Grids of scenarios and a row for every point. Identifiers are content addresses: 52 characters of lower-case base32. Times are
-- milliseconds since 1970 in UTC.

CREATE TABLE sweep (
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 52),
    title             TEXT    NOT NULL,
    note              TEXT,
    -- Sorted, JSON.
    tags_json         TEXT    NOT NULL DEFAULT '[]',
    pinned_at_ms      INTEGER,
    -- In words, for lists.
    axes              TEXT    NOT NULL,
    points            INTEGER NOT NULL CHECK (points > 0),
    -- Since when its points are to be planned; a server that starts goes on with those.
    wanted_at_ms      INTEGER,
    created_at_ms     INTEGER NOT NULL,
    -- A deleted sweep can be brought back until it is forgotten, and leaves its row, so that its address answers "gone since".
    deleted_at_ms     INTEGER,
    -- Last, so that lists do not read it.
    sweep_json        TEXT,
    CHECK (sweep_json IS NOT NULL OR deleted_at_ms IS NOT NULL)
) STRICT;

CREATE INDEX sweep_by_age ON sweep (created_at_ms DESC) WHERE deleted_at_ms IS NULL;

-- What planning a point gave, as the engine wrote it.
CREATE TABLE sweep_point (
    sweep_id          TEXT    NOT NULL REFERENCES sweep (id) ON DELETE CASCADE,
    engine            TEXT    NOT NULL,
    point             INTEGER NOT NULL CHECK (point >= 0),
    -- Planners with a plan; 0 where none has one or where the values make no scenario.
    plans             INTEGER NOT NULL CHECK (plans >= 0),
    row_json          TEXT    NOT NULL,
    PRIMARY KEY (sweep_id, engine, point)
) STRICT, WITHOUT ROWID;

-- Time against memory of every plan, so that a front need not read the rows.
CREATE TABLE sweep_plan (
    sweep_id          TEXT    NOT NULL,
    engine            TEXT    NOT NULL,
    point             INTEGER NOT NULL,
    planner           TEXT    NOT NULL,
    iteration_s       REAL    NOT NULL,
    peak_memory_gib   REAL    NOT NULL,
    PRIMARY KEY (sweep_id, engine, point, planner),
    FOREIGN KEY (sweep_id, engine, point) REFERENCES sweep_point (sweep_id, engine, point) ON DELETE CASCADE
) STRICT, WITHOUT ROWID;
