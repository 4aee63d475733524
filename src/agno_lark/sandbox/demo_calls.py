"""How often the demo models were asked: kept in memory, or in a file that outlives `kill -9`. No agno in here."""

import json
import os
import time
from collections import Counter
from dataclasses import asdict, dataclass, field
from typing import Any

__all__ = ["ModelCall", "ModelCalls", "read_calls"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelCall:
    """One request to a model. `turn_id` is what the run's metadata says, "" where it says nothing (members of a team,
    steps of a workflow); `time_ms` is UTC."""

    session_id: str
    run_id: str
    turn_id: str = ""
    role: str = ""
    time_ms: int = 0


@dataclass(slots=True, kw_only=True)
class ModelCalls:
    """Every request to a model; shared by all models of one demo AgentOS.

    `path`: a file that gets one JSON line a call before the model answers, and is counted as a whole, with what former
    lives wrote; several processes may write to it.
    """

    path: str = ""
    _noted: list[ModelCall] = field(default_factory=list)

    def note(self, *, session_id: str, run_id: str, turn_id: str = "", role: str = "") -> None:
        """Write a call down."""
        call = ModelCall(
            session_id=session_id, run_id=run_id, turn_id=turn_id, role=role, time_ms=time.time_ns() // 1_000_000
        )
        if self.path:
            append_line(self.path, json.dumps(asdict(call)))
        else:
            self._noted.append(call)

    def as_json(self) -> dict[str, Any]:
        """`{"total": n, "by_session": {id: n}, "by_run": {id: n}}`."""
        calls = read_calls(self.path) if self.path else self._noted
        return {
            "total": len(calls),
            "by_session": dict(Counter(call.session_id for call in calls)),
            "by_run": dict(Counter(call.run_id for call in calls)),
        }


def append_line(path: str, line: str) -> None:
    """One write to the end of the file: it is there as a whole or not at all, whoever dies or writes beside us."""
    file = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(file, line.encode() + b"\n")
    finally:
        os.close(file)


def read_calls(path: str | os.PathLike[str]) -> list[ModelCall]:
    """The calls in such a file, in the order they were made; none where there is no file yet."""
    try:
        with open(path, encoding="utf-8") as file:
            return [ModelCall(**json.loads(line)) for line in file]
    except FileNotFoundError:
        return []
