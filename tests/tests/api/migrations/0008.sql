INSERT INTO sweep (id, title, axes, points, created_at_ms, sweep_json) VALUES ('{sweep}', 'two sizes', 'nodes', 2, 1, '{sweep_json}');
INSERT INTO sweep_point (sweep_id, engine, point, plans, row_json) VALUES ('{sweep}', 'planscope 0', 0, 0, '{"of":"an older engine, µ"}');
