INSERT INTO job (id, scenario_id, created_at_ms) VALUES ('a-1', '{scenario}', 1);
