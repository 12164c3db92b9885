INSERT INTO token (hash, name, role, created_at_ms) VALUES (zeroblob(32), 'ada', 'editor', 1767225600000);
INSERT INTO session (hash, token_name, created_at_ms, expires_at_ms) VALUES (zeroblob(32), 'ada', 1767225600000, 1769817600000);
INSERT INTO audit (at_ms, actor, method, action, kind, object) VALUES (1767225600000, 'ada', 'DELETE', 'delete', 'run', 'run-of-version-2');
