INSERT INTO run_log_table (run_id, content) VALUES ('run-of-version-2', '{"schema":"log-table/1","line":[{"name":"ours","pattern":"^STEP (?P<step>[0-9]+)"}]}');
