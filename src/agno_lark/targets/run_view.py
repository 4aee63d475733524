"""A run as it looks now: `fold(view, event) -> view`, pure and total.

Any order, any unknown event, any missing or wrongly typed field is survived. An event with an index at or below the
last one folded changes nothing, so a replay folds to the same view. Terminal states stick. Text deltas are
concatenated as they are, whatever they repeat (cases.md no. 19). Event names: agentos.md, "Runs".
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from agno_lark.targets.event_data import answer_text, mapping, mappings, run_kind, state_of, text_of, time_ms, whole
from agno_lark.targets.protocol import SNAPSHOT_EVENT, TERMINAL_STATES, FaultReason, RunEvent, RunState
from agno_lark.targets.steps import Step, StepKind, StepState, close_running, fold_steps, running_step_text

__all__ = ["RunFault", "RunView", "Step", "StepKind", "StepState", "ending", "fold", "told_run_id"]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFault:
    """Why a run failed. `message` is AgentOS's own text: for the operator, and folded away for the person."""

    reason: FaultReason
    message: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunView:
    """What can be shown of a run.

    `text`: the answer so far: the agent's or the leader's own words, or the running workflow step's until the
    workflow's own content comes. `steps` in order of start. `requirements`: raw, for a paused run. `last_index`: what
    to resume after, -1 when no event had an index. Token counts are None until AgentOS tells them.
    """

    run_id: str = ""
    state: RunState = RunState.SUBMITTED
    text: str = field(default="", repr=False)
    steps: tuple[Step, ...] = ()
    reasoning: str = field(default="", repr=False)
    error: RunFault | None = None
    last_index: int = -1
    input_tokens: int | None = None
    output_tokens: int | None = None
    pause_type: str = ""
    requirements: tuple[Mapping[str, Any], ...] = field(default=(), repr=False)

    @property
    def is_over(self) -> bool:
        """True in a terminal state (a paused run is not over)."""
        return self.state in TERMINAL_STATES


def fold(view: RunView, event: RunEvent) -> RunView:
    """The view after `event`. Raises nothing, whatever the event holds."""
    if event.index is not None:
        if event.index <= view.last_index:
            return view
        view = replace(view, last_index=event.index)
    if view.is_over:
        return view
    data = mapping(event.data)
    if event.name == SNAPSHOT_EVENT:
        return _fold_snapshot(_adopt_run_id(view, data), data)
    kind = run_kind(event.name)
    if kind is None:
        return view
    view = _adopt_run_id(view, data)
    is_root = _is_root(view, data)
    if view.state is RunState.SUBMITTED:
        view = replace(view, state=RunState.RUNNING)
    steps = fold_steps(view.steps, kind, data, is_root=is_root)
    if steps is not view.steps:
        view = replace(view, steps=steps)
    if is_root:
        return _fold_root(view, kind, data)
    shown = running_step_text(view.steps) if data.get("workflow_run_id") else ""
    return replace(view, text=shown) if shown else view


def ending(event: RunEvent, run_id: str) -> RunState | None:
    """The state in which this event ends (or pauses) the run `run_id`; None while it goes on."""
    if event.name != SNAPSHOT_EVENT and run_kind(event.name) not in _ENDINGS:
        return None
    view = fold(RunView(run_id=run_id, state=RunState.RUNNING), replace(event, index=None))
    return view.state if view.is_over or view.state is RunState.PAUSED else None


def told_run_id(event: RunEvent) -> str:
    """Id of the run that an event of its stream is about: the outermost one it names, "" when it names none."""
    data = mapping(event.data)
    return next((text for key in _RUN_ID_KEYS if (text := text_of(data.get(key)))), "")


_ENDINGS = frozenset(
    {
        *("RunCompleted", "RunError", "RunCancelled", "RunPaused"),
        *("WorkflowCompleted", "WorkflowError", "WorkflowCancelled", "WorkflowPaused"),
    }
)
_RUN_ID_KEYS = ("workflow_run_id", "parent_run_id", "run_id")


def _adopt_run_id(view: RunView, data: Mapping[str, Any]) -> RunView:
    """A durable queue mints the run id: what the first event says counts, unless it speaks of a part of our run."""
    if view.state is not RunState.SUBMITTED or (view.run_id and data.get("parent_run_id")):
        return view
    told = told_run_id(RunEvent(name="", data=data))
    return replace(view, run_id=told) if told else view


def _is_root(view: RunView, data: Mapping[str, Any]) -> bool:
    run_id = text_of(data.get("run_id"))
    return not run_id or run_id == view.run_id


def _fold_root(view: RunView, kind: str, data: Mapping[str, Any]) -> RunView:
    match kind:
        case "RunContent":
            return replace(
                view,
                text=view.text + answer_text(data.get("content")),
                reasoning=view.reasoning + text_of(data.get("reasoning_content")),
            )
        case "ReasoningContentDelta":
            return replace(view, reasoning=view.reasoning + text_of(data.get("reasoning_content")))
        case "ReasoningStep":
            return replace(view, reasoning=_with_reasoning_step(view.reasoning, data))
        case "StepCompleted":
            return replace(view, text=running_step_text(view.steps) or view.text)
        case "RunStarted" | "WorkflowStarted":
            return _begun(view, data)
        case "RunContinued" | "StepContinued" | "StepExecutorContinued":
            return replace(view, state=RunState.RUNNING, pause_type="", requirements=())
        case "RunPaused" | "WorkflowPaused":
            return _paused(view, data)
        case "RunCompleted":
            return _ended(replace(view, text=_fuller(view.text, data)), RunState.COMPLETED, data)
        case "WorkflowCompleted":
            return _ended(replace(view, text=answer_text(data.get("content")) or view.text), RunState.COMPLETED, data)
        case "RunError" | "WorkflowError":
            return _ended(view, RunState.FAILED, data)
        case "RunCancelled":
            return _ended(replace(view, text=_with_the_last_words(view.text, data)), RunState.CANCELLED, data)
        case "WorkflowCancelled":
            return _ended(view, RunState.CANCELLED, data)
    return view


def _begun(view: RunView, data: Mapping[str, Any]) -> RunView:
    """A run begins anew in its own stream where agno, or a durable queue, tries again after an error: it is answered
    from the beginning, so what the attempt before had said is no part of it. What that did stays."""
    steps = close_running(view.steps, StepState.FAILED, time_ms(data))
    return replace(view, state=RunState.RUNNING, pause_type="", requirements=(), text="", reasoning="", steps=steps)


def _fold_snapshot(view: RunView, data: Mapping[str, Any]) -> RunView:
    state = state_of(data.get("status"))
    if state is None:
        return view
    if state is RunState.COMPLETED:
        return _ended(replace(view, text=_fuller(view.text, data)), state, data)
    if state in TERMINAL_STATES:
        return _ended(view, state, data)
    return _paused(view, data) if state is RunState.PAUSED else replace(view, state=state)


def _paused(view: RunView, data: Mapping[str, Any]) -> RunView:
    found = next((rows for key in _REQUIREMENT_KEYS if (rows := mappings(data.get(key)))), ())
    pause_type = text_of(data.get("pause_type")) or text_of(data.get("pause_kind"))
    return replace(view, state=RunState.PAUSED, requirements=found, pause_type=pause_type)


_REQUIREMENT_KEYS = ("requirements", "step_requirements", "executor_requirements", "tools")

_LEFT_OPEN = {
    RunState.COMPLETED: StepState.DONE,
    RunState.FAILED: StepState.FAILED,
    RunState.CANCELLED: StepState.STOPPED,
}


def _ended(view: RunView, state: RunState, data: Mapping[str, Any]) -> RunView:
    fault = None
    if state is RunState.FAILED:
        message = answer_text(data.get("error")) or answer_text(data.get("content"))
        fault = RunFault(reason=FaultReason.MODEL_ERROR, message=message)
    metrics = mapping(data.get("metrics"))
    return replace(
        view,
        state=state,
        error=fault,
        pause_type="",
        requirements=(),
        steps=close_running(view.steps, _LEFT_OPEN[state], time_ms(data)),
        reasoning=view.reasoning or text_of(data.get("reasoning_content")),
        input_tokens=whole(metrics.get("input_tokens")) or view.input_tokens,
        output_tokens=whole(metrics.get("output_tokens")) or view.output_tokens,
    )


def _fuller(streamed: str, data: Mapping[str, Any]) -> str:
    """The run's own final content, but only where it holds all that was streamed, in order: nothing said is lost."""
    content = answer_text(data.get("content"))
    if len(content) <= len(streamed):
        return streamed
    rest = iter(content)
    return content if content.startswith(streamed) or all(letter in rest for letter in streamed) else streamed


def _with_the_last_words(streamed: str, data: Mapping[str, Any]) -> str:
    """A cancelled run's content may hold a delta that was not streamed any more; a workflow's is a mere notice."""
    content = answer_text(data.get("content"))
    return content if streamed and content.startswith(streamed) else streamed


def _with_reasoning_step(reasoning: str, data: Mapping[str, Any]) -> str:
    """A whole step of reasoning; models that stream their reasoning have said it in deltas before."""
    said = text_of(data.get("reasoning_content"))
    if not said or said in reasoning:
        return reasoning
    return f"{reasoning}\n\n{said}" if reasoning else said
