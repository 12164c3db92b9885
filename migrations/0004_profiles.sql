-- What devices, clusters and runs were measured to do, and what was fitted to it. Identifiers are content addresses: 52
-- characters of lower-case base32. Times are milliseconds since 1970 in UTC.

CREATE TABLE profile (
    id                TEXT    NOT NULL PRIMARY KEY CHECK (length(id) = 52),
    name              TEXT    NOT NULL,
    note              TEXT,
    -- Sorted, JSON.
    tags_json         TEXT    NOT NULL,
    source_json       TEXT    NOT NULL,
    measurements      INTEGER NOT NULL CHECK (measurements >= 0),
    -- Mean relative residual, absent where nothing was fitted.
    residual          REAL,
    -- Of effect, parts and files.
    bytes             INTEGER NOT NULL CHECK (bytes >= 0),
    created_at_ms     INTEGER NOT NULL,
    -- A deleted profile can be brought back while its content is there, and leaves its row, so that its address answers "gone
    -- since".
    deleted_at_ms     INTEGER,
    -- What it was fitted from beside its files, JSON.
    base_json         TEXT,
    -- Effect, parts, report, JSON; last, so that lists do not read its pages.
    content_json      TEXT,
    CHECK (content_json IS NOT NULL OR deleted_at_ms IS NOT NULL)
) STRICT;

CREATE INDEX profile_by_age ON profile (created_at_ms DESC) WHERE deleted_at_ms IS NULL;
CREATE INDEX profile_by_deletion ON profile (deleted_at_ms) WHERE deleted_at_ms IS NOT NULL AND content_json IS NOT NULL;

-- The files as they came: reading them again gives the same fit.
CREATE TABLE profile_file (
    profile_id        TEXT    NOT NULL REFERENCES profile (id) ON DELETE CASCADE,
    position          INTEGER NOT NULL CHECK (position >= 0),
    name              TEXT    NOT NULL,
    -- Devices of a group, where whoever uploaded it said so.
    ranks             INTEGER,
    content           BLOB    NOT NULL,
    PRIMARY KEY (profile_id, position)
) STRICT;
