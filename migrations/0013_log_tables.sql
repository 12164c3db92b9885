-- Tables of patterns that users give for the lines of a log (docs/formats.md). Their own table: lists of runs do not read them.
CREATE TABLE run_log_table (
    run_id  TEXT NOT NULL PRIMARY KEY REFERENCES run (id) ON DELETE CASCADE,
    content TEXT NOT NULL
) STRICT, WITHOUT ROWID;
