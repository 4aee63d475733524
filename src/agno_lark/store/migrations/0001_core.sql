-- Times are UTC epoch milliseconds, ids are text. Only what SQLite and PostgreSQL share.

-- What has been accepted, by event id and by message id: the second delivery finds its row.
CREATE TABLE dedup_messages (
    app_id TEXT NOT NULL,
    kind TEXT NOT NULL, -- event | message
    key TEXT NOT NULL,
    seen_ms BIGINT NOT NULL,
    PRIMARY KEY (app_id, kind, key)
);
CREATE INDEX dedup_messages_by_age ON dedup_messages (seen_ms);

-- Which generation of a conversation is the current one; /new raises it.
CREATE TABLE session_scopes (
    scope TEXT PRIMARY KEY,
    generation BIGINT NOT NULL,
    created_ms BIGINT NOT NULL,
    updated_ms BIGINT NOT NULL
);

-- A durable unit of work. seq is the order of acceptance.
CREATE TABLE jobs (
    seq INTEGER PRIMARY KEY AUTOINCREMENT,
    id TEXT NOT NULL UNIQUE,
    kind TEXT NOT NULL,
    queue TEXT NOT NULL, -- turns | control
    lane TEXT NOT NULL,
    state TEXT NOT NULL, -- queued | running | done | failed | cancelled | unknown
    payload TEXT NOT NULL, -- JSON; emptied when the job ends
    attempts BIGINT NOT NULL DEFAULT 0,
    created_ms BIGINT NOT NULL,
    available_ms BIGINT NOT NULL,
    started_ms BIGINT,
    finished_ms BIGINT,
    lease_token TEXT,
    lease_owner TEXT,
    lease_until_ms BIGINT,
    effect TEXT, -- what cannot be taken back and has begun
    error TEXT
);
CREATE INDEX jobs_queued ON jobs (lane, seq) WHERE state = 'queued';
CREATE INDEX jobs_running ON jobs (lease_until_ms) WHERE state = 'running';
CREATE INDEX jobs_finished ON jobs (finished_ms) WHERE finished_ms IS NOT NULL;

-- One row a lane that has unfinished jobs. ready_ms is when its head may be claimed; NULL while the head runs.
CREATE TABLE lanes (
    lane TEXT PRIMARY KEY,
    queue TEXT NOT NULL,
    head_seq BIGINT NOT NULL,
    ready_ms BIGINT
);
CREATE INDEX lanes_ready ON lanes (queue, ready_ms, head_seq) WHERE ready_ms IS NOT NULL;

-- A turn and its run. turn_id is the job's id; run_id is AgentOS's.
CREATE TABLE runs (
    turn_id TEXT PRIMARY KEY,
    run_id TEXT,
    seq BIGINT NOT NULL, -- the job's: the order of acceptance
    scope TEXT NOT NULL,
    generation BIGINT NOT NULL,
    session_id TEXT NOT NULL,
    target_type TEXT NOT NULL,
    target_id TEXT NOT NULL,
    app_id TEXT NOT NULL,
    tenant_key TEXT NOT NULL,
    requester TEXT NOT NULL,
    chat_id TEXT NOT NULL,
    chat_type TEXT NOT NULL, -- p2p | group
    thread_id TEXT,
    message_id TEXT NOT NULL,
    language TEXT NOT NULL,
    state TEXT NOT NULL, -- waiting | submitted | running | paused | completed | failed | cancelled | unknown
    reason TEXT, -- one word for why it failed
    cancel_requested_ms BIGINT,
    accepted_ms BIGINT NOT NULL,
    submitted_ms BIGINT,
    finished_ms BIGINT,
    reaction_id TEXT,
    card_id TEXT,
    card_message_id TEXT,
    card_sequence BIGINT NOT NULL DEFAULT 0
);
CREATE INDEX runs_by_scope ON runs (scope, seq);
CREATE INDEX runs_by_run_id ON runs (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX runs_by_session ON runs (session_id, seq);
CREATE INDEX runs_by_requester ON runs (requester, seq);
CREATE INDEX runs_active ON runs (state, scope) WHERE finished_ms IS NULL;
CREATE INDEX runs_by_card ON runs (card_message_id) WHERE card_message_id IS NOT NULL;
