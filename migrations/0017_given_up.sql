-- Why the server gave work up that ended every server which did it. The reason stays until the work is asked for again.

ALTER TABLE job ADD COLUMN failure TEXT;
ALTER TABLE sweep ADD COLUMN failure TEXT;
-- Points that were given up since the sweep was started.
ALTER TABLE sweep ADD COLUMN points_given_up INTEGER NOT NULL DEFAULT 0 CHECK (points_given_up >= 0);
