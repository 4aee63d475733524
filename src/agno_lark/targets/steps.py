"""The steps of a run: tool calls, team members, workflow steps. Pure, and total like `run_view.fold`.

Whose event it is: the run itself has the view's run_id; a workflow step's executor names `workflow_run_id` and
`step_id` and has no parent run; everybody else is a member, known by run id, below `parent_run_id`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from agno_lark.targets.event_data import answer_text, args_summary, mapping, text_of, time_ms

__all__ = ["Step", "StepKind", "StepState", "close_running", "fold_steps", "running_step_text", "step_owner"]

_DELEGATIONS = frozenset({"delegate_task_to_member", "delegate_task_to_members"})
_RESULT_CHARS = 300


class StepKind(StrEnum):
    """What did it."""

    TOOL = "tool"
    MEMBER = "member"
    WORKFLOW_STEP = "workflow_step"


class StepState(StrEnum):
    """How far it is."""

    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    STOPPED = "stopped"  # the run was cancelled while it ran


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One step. `parent`: id of the member or workflow step it belongs to, "" for the run's own.

    `args` and `result` are summaries in one line; `text` is what a member or a workflow step has streamed so far.
    `started_ms`, `ended_ms`: UTC epoch milliseconds by AgentOS's clock (whole seconds), None when untold.
    """

    id: str
    kind: StepKind
    name: str
    state: StepState = StepState.RUNNING
    parent: str = ""
    args: str = field(default="", repr=False)
    result: str = field(default="", repr=False)
    text: str = field(default="", repr=False)
    started_ms: int | None = None
    ended_ms: int | None = None


Steps = tuple[Step, ...]

_RUN_ENDS = {
    "RunCompleted": StepState.DONE,
    "RunError": StepState.FAILED,
    "RunCancelled": StepState.STOPPED,
    "StepCompleted": StepState.DONE,
    "StepError": StepState.FAILED,
}


def step_owner(data: Mapping[str, Any], *, is_root: bool) -> str:
    """Id of the step an event belongs to, "" for the run itself."""
    if is_root:
        return ""
    if data.get("workflow_run_id") and not data.get("parent_run_id"):
        return text_of(data.get("step_id")) or text_of(data.get("step_name"))
    return text_of(data.get("run_id"))


def fold_steps(steps: Steps, kind: str, data: Mapping[str, Any], *, is_root: bool) -> Steps:
    """The steps after one event of this kind (a name of `event_data.run_kind`)."""
    owner = step_owner(data, is_root=is_root)
    if kind.startswith("ToolCall"):
        return _fold_tool(steps, kind, data, owner)
    if kind in ("StepStarted", "StepCompleted", "StepError"):
        step_id = text_of(data.get("step_id")) or text_of(data.get("step_name"))
        return _fold_part(steps, kind, data, step_id, StepKind.WORKFLOW_STEP)
    if is_root or not owner or kind.startswith("Workflow"):
        return steps  # a workflow within a workflow shows by its steps
    by_workflow = bool(data.get("workflow_run_id")) and not data.get("parent_run_id")
    return _fold_part(steps, kind, data, owner, StepKind.WORKFLOW_STEP if by_workflow else StepKind.MEMBER)


def running_step_text(steps: Steps) -> str:
    """What the workflow step that spoke last has said so far."""
    texts = [step.text for step in steps if step.kind is StepKind.WORKFLOW_STEP and step.text]
    return texts[-1] if texts else ""


def close_running(steps: Steps, state: StepState, at_ms: int | None) -> Steps:
    """When a run ends nothing of it runs on: its open steps end in `state`."""
    return tuple(
        replace(step, state=state, ended_ms=at_ms) if step.state is StepState.RUNNING else step for step in steps
    )


def _fold_part(steps: Steps, kind: str, data: Mapping[str, Any], step_id: str, step_kind: StepKind) -> Steps:
    """A member, or a workflow step (told by the workflow itself, or by its executor)."""
    if not step_id:
        return steps
    names = (
        ("step_name",) if step_kind is StepKind.WORKFLOW_STEP else ("agent_name", "team_name", "agent_id", "team_id")
    )
    name = next((text for key in names if (text := text_of(data.get(key)))), step_id)
    old = _find(steps, step_id) or Step(
        id=step_id,
        kind=step_kind,
        name=name,
        parent=_parent(steps, data) if step_kind is StepKind.MEMBER else "",
        started_ms=time_ms(data),
    )
    return _put(steps, _after(old, kind, data))


def _parent(steps: Steps, data: Mapping[str, Any]) -> str:
    """A member's leader is a member itself, or a workflow step's executor, or (then "") the run."""
    candidates = (text_of(data.get("parent_run_id")), text_of(data.get("step_id")))
    return next((step_id for step_id in candidates if _find(steps, step_id) is not None), "")


def _after(step: Step, kind: str, data: Mapping[str, Any]) -> Step:
    if kind in ("RunStarted", "StepStarted"):
        # Again for one that was there before: the next round of a loop, or the next attempt. Its text starts anew.
        return replace(step, state=StepState.RUNNING, text="", ended_ms=None)
    if kind == "RunContent":
        return replace(step, text=step.text + answer_text(data.get("content")))
    if kind in _RUN_ENDS:
        text = step.text or (answer_text(data.get("content")) if _RUN_ENDS[kind] is StepState.DONE else "")
        state = _RUN_ENDS[kind]
        if state is StepState.DONE and step.state in (StepState.FAILED, StepState.STOPPED):
            state = step.state  # after a failure or a cancellation AgentOS still sends a "completed"
        return replace(step, state=state, text=text, ended_ms=time_ms(data))
    return step


def _fold_tool(steps: Steps, kind: str, data: Mapping[str, Any], owner: str) -> Steps:
    tool = mapping(data.get("tool"))
    name = text_of(tool.get("tool_name"))
    failed = kind == "ToolCallError" or tool.get("tool_call_error") is True
    if not name or (name in _DELEGATIONS and not failed):
        return steps  # a delegation shows as the member that does it
    step_id = f"{owner}:{text_of(tool.get('tool_call_id')) or name}"
    old = _find(steps, step_id)
    if kind == "ToolCallStarted":
        rounds = sum(1 for step in steps if step.id == step_id or step.id.startswith(f"{step_id}#"))
        if old is not None and old.state is not StepState.RUNNING:
            step_id = f"{step_id}#{rounds + 1}"  # some models number their calls from one in every request
        args = args_summary(tool.get("tool_args"))
        started = Step(id=step_id, kind=StepKind.TOOL, name=name, parent=owner, args=args, started_ms=time_ms(data))
        return _put(steps, started)
    open_ids = [s.id for s in steps if s.state is StepState.RUNNING and s.id.startswith(f"{step_id}#")]
    step = (_find(steps, open_ids[-1]) if open_ids else old) or Step(
        id=step_id, kind=StepKind.TOOL, name=name, parent=owner, args=args_summary(tool.get("tool_args"))
    )
    result = " ".join(answer_text(tool.get("result")).split())[:_RESULT_CHARS]
    state = StepState.FAILED if failed else StepState.DONE
    return _put(steps, replace(step, state=state, result=result, ended_ms=time_ms(data)))


def _find(steps: Steps, step_id: str) -> Step | None:
    return next((step for step in steps if step.id == step_id), None)


def _put(steps: Steps, step: Step) -> Steps:
    if _find(steps, step.id) is None:
        return (*steps, step)
    return tuple(step if old.id == step.id else old for old in steps)
