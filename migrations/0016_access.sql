-- Named tokens beside that of the environment, sessions of browsers, and who changed what. Times are milliseconds since 1970
-- in UTC.

CREATE TABLE token (
    -- SHA-256 of the token, which is shown once and kept nowhere.
    hash            BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    name            TEXT    NOT NULL UNIQUE CHECK (name <> ''),
    role            TEXT    NOT NULL CHECK (role IN ('reader', 'editor', 'admin')),
    created_at_ms   INTEGER NOT NULL,
    last_used_at_ms INTEGER,
    -- A revoked token keeps its name, so that the audit names one holder only.
    revoked_at_ms   INTEGER
) STRICT;

CREATE TABLE session (
    -- SHA-256 of the value of the cookie; where the session was opened with the token of the environment, of that token's hash
    -- and the value, so that the session ends with the token and the database says nothing about it.
    hash          BLOB    NOT NULL PRIMARY KEY CHECK (length(hash) = 32),
    -- The named token that it was opened with.
    token_name    TEXT    REFERENCES token (name) ON DELETE CASCADE,
    created_at_ms INTEGER NOT NULL,
    expires_at_ms INTEGER NOT NULL
) STRICT, WITHOUT ROWID;
CREATE INDEX session_by_end ON session (expires_at_ms);
CREATE INDEX session_by_token ON session (token_name) WHERE token_name IS NOT NULL;

CREATE TABLE audit (
    number INTEGER NOT NULL PRIMARY KEY,
    at_ms  INTEGER NOT NULL,
    actor  TEXT    NOT NULL,
    method TEXT    NOT NULL,
    action TEXT    NOT NULL,
    kind   TEXT    NOT NULL,
    -- Identifier; empty where the answer names none.
    object TEXT    NOT NULL
) STRICT;
