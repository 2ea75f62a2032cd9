-- How far the log was made smaller: up to where complete items have swallowed their deltas, and up to where it was cut off.
CREATE TABLE upkeep (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  folded_through INTEGER NOT NULL,
  cut_through INTEGER NOT NULL
) STRICT;

INSERT INTO upkeep (one, folded_through, cut_through) VALUES (1, 0, 0);
