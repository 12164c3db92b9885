-- How often a server began to plan a point of a sweep that has no row yet, so that one that ends every server with it is given up
-- some time. Rows go with the row of their point.

CREATE TABLE sweep_attempt (
    sweep_id TEXT    NOT NULL REFERENCES sweep (id) ON DELETE CASCADE,
    engine   TEXT    NOT NULL,
    point    INTEGER NOT NULL CHECK (point >= 0),
    attempts INTEGER NOT NULL CHECK (attempts > 0),
    PRIMARY KEY (sweep_id, engine, point)
) STRICT, WITHOUT ROWID;
