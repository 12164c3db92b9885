INSERT INTO sweep_attempt (sweep_id, engine, point, attempts) VALUES ('{sweep}', 'planscope 0', 1, 2);
