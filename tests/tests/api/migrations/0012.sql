INSERT INTO dataset_report (dataset_id, report_json) VALUES ('{dataset}',
    '{"files":["a.txt"],"format":"plain numbers","source":"one number per line","alternatives":[],"parsed":3,"repaired":0,"skipped":0,"first_problem":null}');
