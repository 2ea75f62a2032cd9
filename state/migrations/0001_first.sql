-- Column names are the records' field names (`state/records.py`); a test compares both. Nested values and lists are JSON text.
-- A step that was released is never edited: what it made exists on somebody's disk. Add the next file.

CREATE TABLE host (
  one INTEGER PRIMARY KEY CHECK (one = 1),
  id TEXT NOT NULL,
  epoch INTEGER NOT NULL,
  syncs_failed INTEGER NOT NULL DEFAULT 0
) STRICT;

CREATE TABLE sessions (
  id TEXT NOT NULL PRIMARY KEY,
  title TEXT,
  status TEXT NOT NULL,
  waiting_on TEXT,
  origin TEXT NOT NULL,
  cwd TEXT NOT NULL,
  model TEXT,
  model_provider TEXT,
  effort TEXT,
  service_tier TEXT,
  runtime_mode TEXT NOT NULL,
  approval_policy_json TEXT,
  sandbox TEXT,
  developer_instructions TEXT,
  config_json TEXT,
  on_resume_lost TEXT NOT NULL,
  on_recovery TEXT NOT NULL,
  thread_id TEXT,
  home TEXT,
  archived INTEGER NOT NULL CHECK (archived IN (0, 1)),
  history INTEGER NOT NULL CHECK (history IN (0, 1)),
  resume_lost INTEGER NOT NULL CHECK (resume_lost IN (0, 1)),
  paused INTEGER NOT NULL CHECK (paused IN (0, 1)),
  generation INTEGER NOT NULL,
  attachment TEXT,
  active_turn_id TEXT,
  ending TEXT,
  message_count INTEGER NOT NULL,
  preview TEXT NOT NULL,
  parent_id TEXT,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  killed_at_ms INTEGER,
  last_error TEXT
) STRICT;

-- The claim: a thread belongs to at most one session that was not killed (I3).
CREATE UNIQUE INDEX sessions_claim ON sessions (thread_id) WHERE thread_id IS NOT NULL AND killed_at_ms IS NULL;
-- Lists run along `created_at_ms`, which never changes: a pager meets each session exactly once, and a busy session costs no index write.
CREATE INDEX sessions_listed ON sessions (created_at_ms, id) WHERE killed_at_ms IS NULL;
CREATE INDEX sessions_by_status ON sessions (status, created_at_ms, id) WHERE killed_at_ms IS NULL;
CREATE INDEX sessions_by_origin ON sessions (origin, created_at_ms, id) WHERE killed_at_ms IS NULL;
CREATE INDEX sessions_by_cwd ON sessions (cwd, created_at_ms, id) WHERE killed_at_ms IS NULL;
-- Sessions that seem to hold nothing: few, and looked for among all.
CREATE INDEX sessions_empty ON sessions (created_at_ms, id)
  WHERE killed_at_ms IS NULL AND history = 0 AND message_count = 0;
-- What boot looks for, however many sessions there are.
CREATE INDEX sessions_live ON sessions (id)
  WHERE killed_at_ms IS NULL
    AND (attachment IS NOT NULL OR ending IS NOT NULL OR status IN ('connecting', 'ready', 'running'));

CREATE TABLE prompts (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  position INTEGER NOT NULL,
  input_json TEXT NOT NULL,
  mode TEXT NOT NULL,
  model TEXT,
  effort TEXT,
  service_tier TEXT,
  interaction_mode TEXT,
  output_schema_json TEXT,
  delivery TEXT NOT NULL,
  recorded INTEGER NOT NULL CHECK (recorded IN (0, 1)),
  attempts INTEGER NOT NULL,
  sent_to TEXT,
  interrupt_wanted INTEGER NOT NULL CHECK (interrupt_wanted IN (0, 1)),
  turn_id TEXT,
  created_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  error TEXT
) STRICT;

CREATE INDEX prompts_listed ON prompts (session_id, position, id);
CREATE INDEX prompts_unfinished ON prompts (session_id, position)
  WHERE delivery NOT IN ('done', 'failed', 'cancelled', 'not_delivered');

-- A fork's copied turns may keep their ids: an id is unique within its session only.
CREATE TABLE turns (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  thread_id TEXT NOT NULL,
  ours INTEGER NOT NULL CHECK (ours IN (0, 1)),
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  state TEXT,
  kind TEXT,
  message TEXT,
  provider_error_json TEXT,
  usage TEXT NOT NULL,
  interrupt_wanted INTEGER NOT NULL CHECK (interrupt_wanted IN (0, 1)),
  reconciled INTEGER NOT NULL CHECK (reconciled IN (0, 1)),
  PRIMARY KEY (session_id, id)
) STRICT;

CREATE INDEX turns_listed ON turns (session_id, started_at_ms, id);
CREATE INDEX turns_open ON turns (session_id, started_at_ms) WHERE ended_at_ms IS NULL;
CREATE INDEX turns_ended ON turns (session_id, ended_at_ms, started_at_ms, id) WHERE ended_at_ms IS NOT NULL;

CREATE TABLE items (
  id TEXT NOT NULL,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  turn_id TEXT NOT NULL,
  type TEXT NOT NULL,
  state TEXT NOT NULL,
  late INTEGER NOT NULL CHECK (late IN (0, 1)),
  item_json TEXT NOT NULL,
  first_seq INTEGER NOT NULL,
  PRIMARY KEY (session_id, turn_id, id)
) STRICT;

CREATE INDEX items_listed ON items (session_id, first_seq, turn_id, id);
CREATE INDEX items_open ON items (session_id, first_seq) WHERE state = 'open';

CREATE TABLE requests (
  id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  attachment TEXT NOT NULL,
  rpc_id_json TEXT NOT NULL,
  method TEXT NOT NULL,
  kind TEXT NOT NULL,
  thread_id TEXT NOT NULL,
  turn_id TEXT,
  item_id TEXT,
  params_json TEXT NOT NULL,
  decisions TEXT NOT NULL,
  status TEXT NOT NULL,
  answer_form TEXT,
  answer_json TEXT,
  opened_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER
) STRICT;

CREATE INDEX requests_listed ON requests (opened_at_ms, id);
CREATE INDEX requests_by_session ON requests (session_id, opened_at_ms, id);
CREATE INDEX requests_by_status ON requests (status, opened_at_ms, id);
CREATE INDEX requests_unfinished ON requests (session_id, opened_at_ms) WHERE status IN ('open', 'answered');

CREATE TABLE intents (
  tag TEXT NOT NULL PRIMARY KEY,
  session_id TEXT NOT NULL REFERENCES sessions (id),
  generation INTEGER NOT NULL,
  kind TEXT NOT NULL,
  cwd TEXT NOT NULL,
  state TEXT NOT NULL,
  thread_id TEXT,
  reason TEXT,
  created_at_ms INTEGER NOT NULL,
  closed_at_ms INTEGER
) STRICT;

CREATE INDEX intents_by_session ON intents (session_id, created_at_ms);
CREATE INDEX intents_open ON intents (created_at_ms, tag) WHERE state = 'open';

CREATE TABLE ignored_threads (
  thread_id TEXT NOT NULL PRIMARY KEY,
  reason TEXT NOT NULL,
  at_ms INTEGER NOT NULL,
  last_seen_ms INTEGER
) STRICT;

CREATE TABLE threads (
  thread_id TEXT NOT NULL PRIMARY KEY,
  home TEXT NOT NULL,
  cls TEXT NOT NULL,
  reason TEXT NOT NULL,
  session_id TEXT,
  parent_thread_id TEXT,
  title TEXT,
  preview TEXT NOT NULL,
  cwd TEXT NOT NULL,
  model TEXT,
  model_provider TEXT,
  source TEXT NOT NULL,
  tag TEXT,
  rollout_path TEXT,
  archived INTEGER NOT NULL CHECK (archived IN (0, 1)),
  message_count INTEGER,
  created_at_ms INTEGER NOT NULL,
  updated_at_ms INTEGER NOT NULL,
  stamp TEXT NOT NULL
) STRICT;

CREATE TABLE disposals (
  thread_id TEXT NOT NULL PRIMARY KEY,
  session_id TEXT,
  wanted TEXT NOT NULL,
  turn_id TEXT,
  done INTEGER NOT NULL CHECK (done IN (0, 1)),
  outcome_json TEXT,
  at_ms INTEGER NOT NULL
) STRICT;

CREATE INDEX disposals_unfinished ON disposals (at_ms, thread_id) WHERE done = 0;

CREATE TABLE idempotency (
  key TEXT NOT NULL PRIMARY KEY,
  fingerprint TEXT NOT NULL,
  answer_json TEXT NOT NULL,
  at_ms INTEGER NOT NULL
) STRICT;

CREATE TABLE events (
  seq INTEGER PRIMARY KEY,
  at_ms INTEGER NOT NULL,
  kind TEXT NOT NULL,
  session_id TEXT,
  turn_id TEXT,
  item_id TEXT,
  data_json BLOB NOT NULL
) STRICT;

CREATE INDEX events_by_session ON events (session_id, seq) WHERE session_id IS NOT NULL;

CREATE TABLE runtimes (
  runtime_id TEXT NOT NULL PRIMARY KEY,
  pid INTEGER NOT NULL,
  start_time TEXT NOT NULL,
  transport TEXT NOT NULL,
  socket TEXT,
  codex_home TEXT NOT NULL,
  codex_version TEXT NOT NULL,
  codex_path TEXT NOT NULL,
  started_at_ms INTEGER NOT NULL,
  ended_at_ms INTEGER,
  exit_json TEXT
) STRICT;

CREATE INDEX runtimes_unended ON runtimes (started_at_ms) WHERE ended_at_ms IS NULL;

-- Guards. The core decides so that none of them ever fires; one that does has stopped a mistake of ours, and its whole batch with it.

CREATE TRIGGER ignore_of_an_owned_thread BEFORE INSERT ON ignored_threads
WHEN EXISTS (SELECT 1 FROM sessions WHERE thread_id = NEW.thread_id AND killed_at_ms IS NULL)
BEGIN SELECT RAISE(ABORT, 'I9: a session owns the thread that is to be ignored'); END;

CREATE TRIGGER claim_of_an_ignored_thread_by_a_new_session AFTER INSERT ON sessions
WHEN NEW.killed_at_ms IS NULL AND EXISTS (SELECT 1 FROM ignored_threads WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, 'I9: the thread that is to be claimed is ignored'); END;

CREATE TRIGGER claim_of_an_ignored_thread AFTER UPDATE OF thread_id, killed_at_ms ON sessions
WHEN NEW.killed_at_ms IS NULL AND EXISTS (SELECT 1 FROM ignored_threads WHERE thread_id = NEW.thread_id)
BEGIN SELECT RAISE(ABORT, 'I9: the thread that is to be claimed is ignored'); END;

CREATE TRIGGER session_comes_back BEFORE UPDATE OF killed_at_ms ON sessions
WHEN OLD.killed_at_ms IS NOT NULL AND NEW.killed_at_ms IS NULL
BEGIN SELECT RAISE(ABORT, 'a killed session does not come back, nor does its id'); END;

CREATE TRIGGER generation_shrinks BEFORE UPDATE OF generation ON sessions
WHEN NEW.generation < OLD.generation
BEGIN SELECT RAISE(ABORT, 'I4: the generation of a session only grows'); END;

CREATE TRIGGER prompt_ends_twice BEFORE UPDATE OF delivery ON prompts
WHEN OLD.delivery IN ('done', 'failed', 'cancelled', 'not_delivered') AND NEW.delivery <> OLD.delivery
BEGIN SELECT RAISE(ABORT, 'I5: a prompt reaches one final state, once'); END;

CREATE TRIGGER turn_ends_twice BEFORE UPDATE OF state ON turns
WHEN OLD.state IS NOT NULL AND NEW.state IS NOT OLD.state
BEGIN SELECT RAISE(ABORT, 'I12: a turn ends once'); END;

CREATE TRIGGER event_renumbered BEFORE UPDATE OF seq ON events
BEGIN SELECT RAISE(ABORT, 'I11: an event keeps its number'); END;

-- The newest event is where the sequence goes on; without it a number would be used twice. (That it grows by one is seen to by
-- `state/apply.py`, once a batch: a trigger would nearly double the cost of an event.)
CREATE TRIGGER newest_event_removed BEFORE DELETE ON events
WHEN OLD.seq = (SELECT max(seq) FROM events)
BEGIN SELECT RAISE(ABORT, 'I11: the newest event is kept'); END;
