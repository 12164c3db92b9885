-- Reports of imports, so that the page of datasets shows what was read and what was skipped. A table of its own: a column would stand
-- behind the content of a dataset, which lists would have to read.
CREATE TABLE dataset_report (
    dataset_id   TEXT NOT NULL PRIMARY KEY REFERENCES dataset (id) ON DELETE CASCADE,
    report_json  TEXT NOT NULL
) STRICT, WITHOUT ROWID;
