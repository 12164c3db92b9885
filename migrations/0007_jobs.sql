-- Planning jobs that were asked for and are not over yet: what a server takes up again where another one left it. Times are
-- milliseconds since 1970 in UTC.

CREATE TABLE job (
    id                TEXT    NOT NULL PRIMARY KEY,
    -- The latest job of a scenario counts.
    scenario_id       TEXT    NOT NULL UNIQUE REFERENCES scenario (id) ON DELETE CASCADE,
    created_at_ms     INTEGER NOT NULL,
    -- How often a server began to plan it.
    attempts          INTEGER NOT NULL DEFAULT 0 CHECK (attempts >= 0)
) STRICT;
