-- Sizes stand behind the JSON of their row, which is read page by page on the way to them: lists summed up every byte of all
-- outcomes.
CREATE INDEX outcome_by_size ON outcome (scenario_id, bytes);
