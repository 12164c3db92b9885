INSERT INTO scenario (id, title, kept, created_at_ms, used_at_ms, scenario_json)
VALUES ('{scenario}', 'kept', 1, 1, 1, '{scenario_json}');
INSERT INTO scenario (id, title, kept, created_at_ms, used_at_ms, deleted_at_ms)
VALUES ('deletedinversion1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'deleted', 1, 2, 2, 3);
INSERT INTO dataset (id, name, samples, text_tokens_json, images_json, created_at_ms, content_json)
VALUES ('{dataset}', 'lengths', 3, '{"edges":[5.0,9.0],"counts":[3],"mean":7.0,"median":7.0,"p99":9.0,"max":9.0}', NULL, 1,
        x'{dataset_hex}');
INSERT INTO dataset (id, name, samples, text_tokens_json, created_at_ms, deleted_at_ms)
VALUES ('deletedinversion1aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'deleted', 3, '{}', 1, 2);
