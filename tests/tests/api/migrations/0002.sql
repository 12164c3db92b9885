INSERT INTO run (id, name, origin, scenario_id, created_at_ms, updated_at_ms, bytes, report_json)
VALUES ('run-of-version-2', 'a job', 'live', '{scenario}', 1, 2, {log_bytes}, '{}');
INSERT INTO run_tag (run_id, tag) VALUES ('run-of-version-2', 'early');
INSERT INTO run_file (run_id, file, bytes) VALUES ('run-of-version-2', 0, {log_bytes});
INSERT INTO run_chunk (run_id, file, start, bytes, content) VALUES ('run-of-version-2', 0, 0, {log_bytes}, CAST('{log}' AS BLOB));
