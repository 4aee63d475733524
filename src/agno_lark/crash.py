"""Named places at which a test may kill this process, as `kill -9` would: `AGNO_LARK_CRASH_AT=turn.submitted`.

`name:3` means the third time the place is reached. Only a bridge that talks to a sandbox on this machine obeys; against
a real Feishu it refuses to start (`SettingsError`). The numbers are those of design.md, "A turn, and where it may die".
"""

import os
import signal
from collections.abc import Mapping

from agno_lark.errors import SettingsError

__all__ = ["CRASH_POINTS", "VARIABLE", "arm", "reached"]

VARIABLE = "AGNO_LARK_CRASH_AT"

CRASH_POINTS: Mapping[str, str] = {
    "accept.received": "1: the event is read, nothing is committed",
    "accept.committed": "1: keys and job are committed, the event is not acknowledged",
    "accept.acknowledged": "1: the event is acknowledged",
    "turn.claimed": "2 and 4: claimed; the run's id and its submission are recorded, nothing has been sent",
    "turn.card_made": "3: the card exists at Feishu, we do not know its id",
    "turn.card_sent": "3: the card is shown, we do not know the message's id",
    "turn.submitting": "4: the next thing is the request to the AgentOS",
    "turn.submitted": "4: the AgentOS has taken the request, none of its events is recorded",
    "turn.running": "5: the run's id is recorded with its first event",
    "turn.following": "6: some events later",
    "turn.ended": "7: the run's end is known here and nowhere else",
    "turn.closed": "7: run and job are closed, the answer is in the outbox",
    "reply.sending": "7: the answer's delivery is claimed, nothing of it has been sent",
    "reply.part_sent": "7: Feishu has one part of the answer, that is not recorded",
    "reply.sent": "7: Feishu has the whole answer, that is not recorded",
    "reply.confirmed": "7: the answer is recorded as shown; the emoji is still there",
}

_armed: dict[str, int] = {}


def arm(given: str | None, *, in_sandbox: bool) -> None:
    """Take the variable's value; None or "" disarms. Raises `SettingsError` outside a sandbox and for an unknown name.

    Holds for the whole process: there is one bridge in it when a test uses this.
    """
    _armed.clear()
    if not given:
        return
    if not in_sandbox:
        raise SettingsError([f"{VARIABLE}: only for tests against a sandbox on this machine; unset it"])
    name, _, times = given.partition(":")
    if name not in CRASH_POINTS or (times and not times.isdigit()):
        known = ", ".join(CRASH_POINTS)
        raise SettingsError([f"{VARIABLE}: expected one of {known}, with :N behind it or not, got {given[:60]!r}"])
    _armed[name] = int(times or 1)


def reached(name: str) -> None:
    """Die here, if this is the place."""
    if name in _armed:
        _armed[name] -= 1
        if _armed[name] <= 0:
            os.kill(os.getpid(), signal.SIGKILL)
