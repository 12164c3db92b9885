-- Kept by a link that was copied, and opened since; a draft of a client.
UPDATE scenario SET kept_by = 'link', viewed_at_ms = 5 WHERE id = '{scenario}';
INSERT INTO draft_client (client, scenario_id, used_at_ms) VALUES ('a client', '{scenario}', 5);
