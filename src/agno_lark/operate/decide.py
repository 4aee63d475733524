"""Asking again, and taking back, for an operator. The person concerned is always told by a card."""

from collections.abc import Iterable

from agno_lark.commands import ask_to_stop
from agno_lark.jobs import JobState, cancel_queued, hurry
from agno_lark.operate.whereabouts import JobLine, whereabouts
from agno_lark.replies import REPLY, cancel_reply, send_again
from agno_lark.store import Tx
from agno_lark.turns import TURN, Decided, cancel_waiting, dismiss_turn, request_cancel, retry_turn

__all__ = ["cancel_job", "retry_job"]


def retry_job(tx: Tx, given: str, new_id: str) -> str:
    """Ask again: a turn that failed, is unknown or was set aside, as a new turn; a reply that could not be shown, once
    more, also where it is its turn's or its command's id that is given. Returns what was done, or why nothing was."""
    found = whereabouts(tx, given)
    if found is None:
        return _unheard(given)
    job = found.job
    if job.kind == REPLY:
        return _send_again(tx, (job,), new_id) or f"nothing: the reply is {job.state}, or it was sent again before"
    decided = retry_turn(tx, job.id, new_id) if job.kind == TURN else Decided.NOTHING
    if decided is Decided.DONE:
        return f"done: asked again, as turn {new_id}"
    if decided is Decided.ALREADY:
        return "nothing: it was asked again or dismissed before, or its words have been erased since"
    if told := _send_again(tx, found.replies, new_id):
        return told
    if job.kind != TURN:
        return f"nothing: a {job.kind} is not asked again; the person can send it again"
    return f"nothing: the turn is {_as_told(job)}; only what failed, is unknown or came too late is asked again"


def _send_again(tx: Tx, replies: Iterable[JobLine], new_id: str) -> str | None:
    """Send the first of these that waits now, or that failed once more; None where there is none, or it was sent again
    before."""
    for reply in replies:
        if reply.state == JobState.QUEUED and hurry(tx, reply.id):
            return "done: its answer is tried now"
        if reply.state == JobState.FAILED and send_again(tx, reply.id, new_id, reply.lane):
            return f"done: the answer will be sent once more, as job {new_id}"
    return None


def cancel_job(tx: Tx, given: str, new_id: str) -> str:
    """Take back: a turn that waits is not begun, one under way is asked to stop, an unknown one is left as it is; a
    reply that waits is not sent. Returns what was done, or why nothing was."""
    found = whereabouts(tx, given)
    if found is None:
        return _unheard(given)
    job = found.job
    if job.kind == TURN:
        return _cancel_turn(tx, job, new_id)
    if job.state != JobState.QUEUED:
        return f"nothing: the {job.kind} is {job.state}"
    if job.kind == REPLY:
        cancel_reply(tx, job.id)
    cancel_queued(tx, job.id, "cancelled by an operator")
    return "done: it is not carried out"


def _cancel_turn(tx: Tx, job: JobLine, new_id: str) -> str:
    if cancel_waiting(tx, job.id, "cancelled by an operator"):
        return "done: it was not begun; the person is told"
    if job.state == JobState.RUNNING and request_cancel(tx, job.id):
        ask_to_stop(tx, new_id, job.id)
        return "done: the stop is noted; the AgentOS is asked, and the card says how the run ended"
    if dismiss_turn(tx, job.id) is Decided.DONE:
        return "done: it is left as it is; its words are erased"
    return f"nothing: the turn is {_as_told(job)}"


def _as_told(job: JobLine) -> str:
    return f"over ({job.state})" if job.finished_ms else job.state


def _unheard(given: str) -> str:
    return f"nothing: no message, job or run {given!r} is known: it was not accepted (yet), or is forgotten"
