UPDATE scenario SET note = 'noted', tags_json = '["later"]', pinned_at_ms = 4 WHERE id = '{scenario}';
