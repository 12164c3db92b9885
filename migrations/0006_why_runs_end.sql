-- Why a run ended, in the words of whoever said that it did.
ALTER TABLE run ADD COLUMN end_reason TEXT;
