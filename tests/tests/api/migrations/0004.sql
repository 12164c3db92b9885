INSERT INTO profile (id, name, tags_json, source_json, measurements, bytes, created_at_ms, content_json)
VALUES ('measuredinversion4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 'measured', '[]', '{"kind":"files","formats":["GEMMs"]}', 2, 2, 1, '{}');
INSERT INTO profile_file (profile_id, position, name, content)
VALUES ('measuredinversion4aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa', 0, 'gemm.csv', CAST('m,n,k' AS BLOB));
