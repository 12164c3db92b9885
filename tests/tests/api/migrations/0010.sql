-- Forgotten: only its word is left, and nothing of its size.
INSERT INTO sweep (id, title, axes, points, created_at_ms, deleted_at_ms, bytes)
VALUES ('forgottenaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'gone', 'nodes', 2, 1, 2, 0);
