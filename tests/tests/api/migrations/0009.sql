-- A size that changes moves in the index too.
UPDATE outcome SET bytes = bytes + 1;
