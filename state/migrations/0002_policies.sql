-- Who decides about what Codex asks: what a session's creator chose, and who it was in the end.
ALTER TABLE sessions ADD COLUMN request_policy TEXT;
ALTER TABLE requests ADD COLUMN decided_by TEXT;
