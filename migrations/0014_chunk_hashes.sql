-- SHA-256 of stored contents whose address does not say what they are: of the columns of a row that hold content, each with its length in
-- front (server/src/store/hashes.rs). NULL for rows of earlier versions until a server has filled them in; the indices find those
-- without reading contents, and are empty afterwards.

ALTER TABLE run_chunk ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE run_point ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE run_log_table ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE outcome ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE timeline ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE trace ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE trace_chunk ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE trace_names ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE profile ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE sweep_point ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);
ALTER TABLE dataset_report ADD COLUMN sha256 BLOB CHECK (length(sha256) = 32);

CREATE INDEX run_chunk_unhashed ON run_chunk (sha256) WHERE sha256 IS NULL;
CREATE INDEX run_point_unhashed ON run_point (sha256) WHERE sha256 IS NULL;
CREATE INDEX run_log_table_unhashed ON run_log_table (sha256) WHERE sha256 IS NULL;
CREATE INDEX outcome_unhashed ON outcome (sha256) WHERE sha256 IS NULL;
CREATE INDEX timeline_unhashed ON timeline (sha256) WHERE sha256 IS NULL;
-- Of purged traces and forgotten profiles a word is left, without content.
CREATE INDEX trace_unhashed ON trace (sha256) WHERE sha256 IS NULL AND overview IS NOT NULL;
CREATE INDEX trace_chunk_unhashed ON trace_chunk (sha256) WHERE sha256 IS NULL;
CREATE INDEX trace_names_unhashed ON trace_names (sha256) WHERE sha256 IS NULL;
CREATE INDEX profile_unhashed ON profile (sha256) WHERE sha256 IS NULL AND content_json IS NOT NULL;
CREATE INDEX sweep_point_unhashed ON sweep_point (sha256) WHERE sha256 IS NULL;
CREATE INDEX dataset_report_unhashed ON dataset_report (sha256) WHERE sha256 IS NULL;
