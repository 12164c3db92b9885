INSERT INTO run (id, name, origin, created_at_ms, ended_at_ms, exit_code, end_reason, report_json)
VALUES ('run-of-version-6', 'another job', 'live', 1, 2, 0, 'it was enough', '{}');
