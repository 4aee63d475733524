-- Replies not yet confirmed: what somebody must see, written in the transaction that decides it. A job of kind `reply`
-- with the same id carries it to Feishu; the row goes when Feishu has confirmed.
CREATE TABLE outbox (
    id TEXT PRIMARY KEY, -- the job's
    turn_id TEXT, -- the turn it answers; NULL where a card of ours answers a command
    place TEXT NOT NULL, -- JSON: chat_id, message_id, thread_id
    language TEXT NOT NULL,
    content TEXT NOT NULL, -- JSON: {"ending": …} or {"card": …, "text": …}
    parts_done BIGINT NOT NULL DEFAULT 0,
    unsure_since_ms BIGINT, -- the first send whose answer was lost: its uuid protects for an hour from then
    round BIGINT NOT NULL DEFAULT 0, -- goes into the uuids: another one once the hour is over
    created_ms BIGINT NOT NULL
);

-- Which job a message became: "where is my message?"
ALTER TABLE dedup_messages ADD COLUMN job_id TEXT;

CREATE INDEX jobs_unknown ON jobs (seq) WHERE state = 'unknown';
ALTER TABLE runs ADD COLUMN retry_of TEXT; -- the turn this one was asked for in the stead of
ALTER TABLE runs ADD COLUMN seen TEXT; -- JSON: what the person had seen of a run that goes on; gone when it ends
ALTER TABLE runs ADD COLUMN replied_ms BIGINT; -- when Feishu had confirmed the whole answer
CREATE INDEX runs_by_retry ON runs (retry_of) WHERE retry_of IS NOT NULL;
CREATE INDEX runs_by_message ON runs (message_id);
CREATE INDEX runs_with_emoji ON runs (turn_id) WHERE reaction_id IS NOT NULL;
CREATE INDEX runs_finished ON runs (finished_ms) WHERE finished_ms IS NOT NULL;
