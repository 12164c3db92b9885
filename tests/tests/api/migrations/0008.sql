INSERT INTO sweep (id, title, axes, points, created_at_ms, sweep_json) VALUES ('{sweep}', 'two sizes', 'nodes', 2, 1, '{sweep_json}');
