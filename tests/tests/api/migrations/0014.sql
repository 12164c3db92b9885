INSERT INTO run (id, name, origin, created_at_ms, updated_at_ms, bytes, report_json)
VALUES ('runofversion-14a', 'a hashed job', 'live', 1, 2, {log_bytes}, '{}');
INSERT INTO run_file (run_id, file, bytes) VALUES ('runofversion-14a', 0, {log_bytes});
-- The hash of the bytes with their length in front.
INSERT INTO run_chunk (run_id, file, start, bytes, content, sha256)
VALUES ('runofversion-14a', 0, 0, {log_bytes}, CAST('{log}' AS BLOB), x'c3da37daf4c5897a4958a604b4bc915c44efc9c683cea124c0dab0a923951b64');
