"""Runs as AgentOS stores them, and what it says of itself: from JSON to values. Pure, and raises nothing."""

from collections.abc import Mapping
from typing import Any

from agno_lark.targets.event_data import answer_text, mapping, mappings, state_of, text_of
from agno_lark.targets.protocol import SNAPSHOT_EVENT, RunEvent, RunSnapshot, RunState, TargetType

__all__ = ["newest_of_turn", "open_ticket", "run_snapshot", "runs_untold", "snapshot_event", "target_name"]


def run_snapshot(answer: object, session_id: str) -> RunSnapshot | None:
    """A stored run, or None for anything without a run id."""
    raw = mapping(answer)
    run_id = text_of(raw.get("run_id"))
    if not run_id:
        return None
    return RunSnapshot(
        run_id=run_id,
        session_id=text_of(raw.get("session_id")) or session_id,
        state=state_of(raw.get("status")) or RunState.RUNNING,
        content=answer_text(raw.get("content")),
        metadata=mapping(raw.get("metadata")),
        raw=raw,
    )


def newest_of_turn(answer: object, session_id: str, turn_id: str) -> RunSnapshot | None:
    """The last run of a list (AgentOS lists the oldest first) that carries this turn id."""
    for row in reversed(mappings(answer)):
        if mapping(row.get("metadata")).get("turn_id") == turn_id:
            return run_snapshot(row, session_id)
    return None


def runs_untold(answer: object) -> tuple[str, ...]:
    """Run ids, newest first, of the rows that come without metadata: teams and workflows are listed so (3.1.10)."""
    rows = reversed(mappings(answer))
    return tuple(run_id for row in rows if row.get("metadata") is None and (run_id := text_of(row.get("run_id"))))


def snapshot_event(snapshot: RunSnapshot, *, ticket: str = "") -> RunEvent:
    """The one event that stands for a whole stored run. `ticket`: see SNAPSHOT_EVENT; "" for none."""
    told = {"queue_ticket": ticket} if ticket else {}
    return RunEvent(name=SNAPSHOT_EVENT, data={**snapshot.raw, "run_id": snapshot.run_id, **told})


def open_ticket(job: object) -> str:
    """From `GET /queue/jobs/{run_id}`: queued or running, or "" when the queue is done with the run or knows none."""
    status = text_of(mapping(job).get("status"))
    return status if status in ("queued", "running") else ""


def target_name(config: object, target_type: TargetType, target_id: str) -> tuple[str | None, bool | None]:
    """From `GET /config`: the target's name (None when it isn't listed), and whether the queue is durable."""
    answer: Mapping[str, Any] = mapping(config)
    listed = mappings(answer.get(f"{target_type.value}s"))
    row = next((row for row in listed if row.get("id") == target_id), None)
    durable = mapping(answer.get("queue")).get("durable")
    name = None if row is None else text_of(row.get("name")) or target_id
    return name, durable if isinstance(durable, bool) else None
