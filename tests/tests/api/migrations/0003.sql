-- Of a purged trace only a word is left.
INSERT INTO trace (id, name, tags_json, run_id, format, created_at_ms, deleted_at_ms, raw_bytes, stored_bytes, slices, span_ns, actions)
VALUES ('purgedinversion3aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'a trace', '[]', 'run-of-version-2', 'Chrome trace', 1, 2, 10, 0, 1, 5, 0);
