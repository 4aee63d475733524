"""How a turn begins: its job at the end of the conversation's lane, and its row, in one transaction."""

from dataclasses import dataclass

from agno_lark.jobs import NewJob, Queue, enqueue
from agno_lark.locale import Lang
from agno_lark.replies import Place
from agno_lark.sessions import current_generation, session_id
from agno_lark.store import Tx
from agno_lark.targets import RunRequest
from agno_lark.turns.rows import NewRun, RunRow, open_run

__all__ = ["TURN", "Asked", "begin_turn", "place_of", "request_of"]

TURN = "turn"  # payload: text; age_ms where it came too late


@dataclass(frozen=True, kw_only=True, slots=True)
class Asked:
    """What somebody wrote, and where. `scope` as text; `requester` is an open id."""

    text: str
    scope: str
    target_type: str
    target_id: str
    app_id: str
    tenant_key: str
    requester: str
    chat_type: str
    place: Place
    language: Lang
    retry_of: str | None = None


def begin_turn(tx: Tx, turn_id: str, asked: Asked, *, age_ms: int | None = None) -> str:
    """Enqueue the turn in the current generation of its scope; returns its session id, which is its lane."""
    generation = current_generation(tx, asked.scope)
    session = session_id(asked.scope, generation)
    payload = {"text": asked.text} | ({} if age_ms is None else {"age_ms": age_ms})
    seq = enqueue(tx, NewJob(id=turn_id, kind=TURN, queue=Queue.TURNS, lane=session, payload=payload))
    run = NewRun(
        turn_id=turn_id,
        seq=seq,
        scope=asked.scope,
        generation=generation,
        session_id=session,
        target_type=asked.target_type,
        target_id=asked.target_id,
        app_id=asked.app_id,
        tenant_key=asked.tenant_key,
        requester=asked.requester,
        chat_id=asked.place.chat_id,
        chat_type=asked.chat_type,
        thread_id=asked.place.thread_id,
        message_id=asked.place.message_id,
        language=asked.language,
        retry_of=asked.retry_of,
    )
    open_run(tx, run)
    return session


def place_of(row: RunRow) -> Place:
    """Where the turn is answered."""
    return Place(chat_id=row.chat_id, message_id=row.message_id, thread_id=row.thread_id)


def request_of(row: RunRow, run_id: str, text: str) -> RunRequest:
    """What the AgentOS is asked; the true sender is in the metadata."""
    return RunRequest(
        message=text,
        session_id=row.session_id,
        user_id=row.requester,
        run_id=run_id,
        turn_id=row.turn_id,
        metadata={
            "channel": "feishu",
            "chat_id": row.chat_id,
            "message_id": row.message_id,
            "sender_open_id": row.requester,
        }
        | ({"retry_of": row.retry_of} if row.retry_of else {}),
    )
