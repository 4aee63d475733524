"""Events fold into the view a person sees."""

from collections.abc import Mapping

import pytest

from agno_lark.targets import (
    SNAPSHOT_EVENT,
    FaultReason,
    RunEvent,
    RunState,
    RunView,
    StepKind,
    StepState,
    ending,
    fold,
)
from tests.targets_fixtures import event, folded


def tool(name: str = "weather", call_id: str = "c1", **more: object) -> dict[str, object]:
    return {"tool_call_id": call_id, "tool_name": name, "tool_args": {"city": "Rome"}, **more}


def test_text_before_and_after_a_tool_call_is_all_kept() -> None:
    view = folded(
        [
            event("RunStarted", 0),
            event("RunContent", 1, content="before "),
            event("ToolCallStarted", 2, tool=tool()),
            event("ToolCallCompleted", 3, tool=tool(result="sunny")),
            event("RunContent", 4, content="after"),
            event("RunCompleted", 5, content="after"),
        ]
    )
    assert (view.text, view.state, view.last_index) == ("before after", RunState.COMPLETED, 5)
    (step,) = view.steps
    assert (step.kind, step.name, step.state) == (StepKind.TOOL, "weather", StepState.DONE)
    assert (step.args, step.result) == ("city=Rome", "sunny")


def test_a_run_that_begins_anew_is_answered_from_its_beginning() -> None:
    """Tried again after an error, by agno or by a durable queue; indices go on. What its tools did stays."""
    view = folded(
        [
            event("RunStarted", 0),
            event("RunContent", 1, content="half ", reasoning_content="hm"),
            event("ToolCallStarted", 2, tool=tool()),
            event("RunStarted", 3),
            event("RunContent", 4, content="half "),
            event("RunContent", 5, content="whole"),
            event("RunCompleted", 6, content="half whole"),
        ]
    )
    assert (view.text, view.reasoning, view.state) == ("half whole", "", RunState.COMPLETED)
    assert [step.state for step in view.steps] == [StepState.FAILED]


def test_a_member_that_begins_takes_nothing_from_its_team_s_text() -> None:
    events = [event("TeamRunContent", 0, content="so far"), event("RunStarted", 1, run_id="m", parent_run_id="r")]
    assert folded(events).text == "so far"


@pytest.mark.parametrize(
    ("deltas", "text"),
    [
        (["1", "1", "0"], "110"),
        (["$1,", "000", ",000"], "$1,000,000"),
        (["哈", "哈", "哈"], "哈哈哈"),
        (["\n", "\n"], "\n\n"),
    ],
)
def test_repeated_deltas_are_not_taken_for_repetitions(deltas: list[str], text: str) -> None:
    """Case 19."""
    events = [event("RunContent", n, content=delta) for n, delta in enumerate(deltas)]
    assert folded([*events, event("RunCompleted", len(deltas), content=text)]).text == text


def test_the_final_content_counts_when_nothing_was_streamed() -> None:
    assert folded([event("RunStarted"), event("RunCompleted", content="whole")]).text == "whole"


def test_the_final_content_mends_a_gap_in_the_stream() -> None:
    view = folded([event("RunContent", 0, content="one "), event("RunContent", 7, content="three")])
    assert fold(view, event("RunCompleted", 8, content="one two three")).text == "one two three"


def test_structured_content_is_shown_as_json() -> None:
    assert folded([event("RunCompleted", content={"答": 42})]).text == '{\n  "答": 42\n}'


def test_a_replayed_event_changes_nothing() -> None:
    events = [event("RunContent", n, content=str(n)) for n in range(4)]
    view = folded(events)
    assert folded(events, view) == view
    assert view.text == "0123"


def test_events_without_an_index_are_always_folded() -> None:
    assert folded([event("RunContent", content="a"), event("RunContent", content="a")]).text == "aa"


@pytest.mark.parametrize(
    ("name", "state"),
    [
        ("RunCompleted", RunState.COMPLETED),
        ("TeamRunCompleted", RunState.COMPLETED),
        ("WorkflowCompleted", RunState.COMPLETED),
        ("RunError", RunState.FAILED),
        ("TeamRunError", RunState.FAILED),
        ("WorkflowError", RunState.FAILED),
        ("RunCancelled", RunState.CANCELLED),
        ("TeamRunCancelled", RunState.CANCELLED),
        ("WorkflowCancelled", RunState.CANCELLED),
    ],
)
def test_a_terminal_state_sticks(name: str, state: RunState) -> None:
    over = folded([event("RunStarted", 0), event(name, 1, content="end", error="end")])
    assert over.state is state
    later = folded([event("RunStarted", 2), event("RunContent", 3, content="x"), event("RunCompleted", 4)], over)
    assert (later.state, later.text, later.error) == (over.state, over.text, over.error)


def test_the_completed_event_after_a_cancellation_is_not_believed() -> None:
    """AgentOS 3.1.10 sends RunCancelled, then RunCompleted."""
    view = folded(
        [event("RunContent", 0, content="1 "), event("RunCancelled", 1, content="1 2 "), event("RunCompleted", 2)]
    )
    assert (view.state, view.text) == (RunState.CANCELLED, "1 2 ")


def test_an_error_says_why() -> None:
    view = folded([event("RunStarted"), event("RunError", content="no credit", error_type="ModelProviderError")])
    assert view.error is not None
    assert (view.error.reason, view.error.message) == (FaultReason.MODEL_ERROR, "no credit")


def test_a_member_s_words_are_a_step_and_the_leader_s_are_the_answer() -> None:
    member: Mapping[str, object] = {"run_id": "m", "parent_run_id": "r", "agent_name": "Ann"}
    view = folded(
        [
            event("TeamRunStarted", 0),
            event("TeamRunContent", 1, content="Asking. "),
            event("TeamToolCallStarted", 2, tool=tool("delegate_task_to_member")),
            event("RunStarted", 3, **member),
            event("ToolCallStarted", 4, tool=tool(), **member),
            event("RunContent", 5, content="I say yes", **member),
            event("ToolCallCompleted", 6, tool=tool(), **member),
            event("RunCompleted", 7, content="I say yes", **member),
            event("TeamRunContent", 8, content="Ann says yes."),
            event("TeamRunCompleted", 9, content="Asking. Ann says yes."),
        ]
    )
    assert (view.text, view.state, view.run_id) == ("Asking. Ann says yes.", RunState.COMPLETED, "r")
    ann, call = view.steps
    assert (ann.kind, ann.name, ann.state, ann.text) == (StepKind.MEMBER, "Ann", StepState.DONE, "I say yes")
    assert (call.kind, call.parent) == (StepKind.TOOL, ann.id)


def test_a_failed_member_does_not_fail_the_team() -> None:
    view = folded([event("TeamRunStarted"), event("RunError", run_id="m", parent_run_id="r", content="oh")])
    assert (view.state, view.steps[0].state) == (RunState.RUNNING, StepState.FAILED)


def test_a_workflow_shows_the_running_step_s_text_and_ends_with_its_own() -> None:
    def inner(name: str, index: int, step: str, **data: object) -> RunEvent:
        return event(name, index, run_id=f"run-{step}", workflow_run_id="r", step_id=step, step_name=step, **data)

    events = [
        event("WorkflowStarted", 0),
        event("StepStarted", 1, step_id="a", step_name="Draft"),
        inner("RunStarted", 2, "a"),
        inner("RunContent", 3, "a", content="dra"),
        inner("RunContent", 4, "a", content="ft"),
        inner("RunCompleted", 5, "a", content="draft"),
        event("StepCompleted", 6, step_id="a", step_name="Draft", content="draft"),
        event("StepStarted", 7, step_id="b", step_name="Review"),
        inner("RunContent", 8, "b", content="good"),
        event("WorkflowCompleted", 9, content="good."),
    ]
    assert [folded(events[:n]).text for n in (5, 8, 9, 10)] == ["draft", "draft", "good", "good."]
    view = folded(events)
    assert [(step.name, step.state) for step in view.steps] == [("Draft", StepState.DONE), ("Review", StepState.DONE)]
    assert all(step.kind is StepKind.WORKFLOW_STEP for step in view.steps)


def test_another_attempt_at_a_workflow_step_starts_its_text_anew() -> None:
    def attempt(name: str, run_id: str, **data: object) -> RunEvent:
        return event(name, run_id=run_id, workflow_run_id="r", step_id="a", **data)

    view = folded(
        [
            event("WorkflowStarted"),
            attempt("RunStarted", "x"),
            attempt("RunContent", "x", content="half"),
            attempt("RunError", "x", content="oh"),
            attempt("RunStarted", "y"),
            attempt("RunContent", "y", content="whole"),
        ]
    )
    assert (view.text, view.state, view.steps[0].state) == ("whole", RunState.RUNNING, StepState.RUNNING)


def test_a_workflow_within_a_workflow_shows_by_its_steps() -> None:
    inner = {"run_id": "i", "workflow_run_id": "r", "nested_depth": 1}
    view = folded(
        [
            event("WorkflowStarted"),
            event("StepStarted", step_id="outer", step_name="Outer"),
            event("WorkflowStarted", **inner),
            event("StepStarted", step_id="one", step_name="One", **inner),
            event("StepCompleted", step_id="one", step_name="One", content="said", **inner),
            event("WorkflowCompleted", content="said", **inner),
        ]
    )
    assert [(step.name, step.state) for step in view.steps] == [("Outer", StepState.RUNNING), ("One", StepState.DONE)]
    assert (view.state, view.text) == (RunState.RUNNING, "said")


def test_what_is_left_open_ends_with_the_run() -> None:
    started = [event("RunStarted"), event("ToolCallStarted", tool=tool())]
    ends = {"RunCompleted": StepState.DONE, "RunError": StepState.FAILED, "RunCancelled": StepState.STOPPED}
    assert {name: folded([*started, event(name)]).steps[0].state for name in ends} == ends


def test_the_same_call_id_again_is_another_step() -> None:
    round_one = [event("ToolCallStarted", tool=tool()), event("ToolCallCompleted", tool=tool())]
    view = folded([*round_one, event("ToolCallStarted", tool=tool())])
    assert [step.state for step in view.steps] == [StepState.DONE, StepState.RUNNING]
    assert [step.state for step in fold(view, event("ToolCallError", tool=tool())).steps] == [
        StepState.DONE,
        StepState.FAILED,
    ]


def test_secrets_among_the_arguments_are_masked() -> None:
    args = {"city": "Rome", "api_key": "abc", "Authorization": "Bearer abc"}
    (step,) = folded([event("ToolCallStarted", tool=tool(tool_args=args))]).steps
    assert step.args == "city=Rome, api_key=•••, Authorization=•••"


def test_a_pause_keeps_its_requirements_and_a_continuation_drops_them() -> None:
    paused = folded(
        [event("RunStarted", 0), event("RunPaused", 1, requirements=[{"id": "q"}], pause_type="confirmation")]
    )
    assert (paused.state, paused.pause_type, paused.requirements) == (RunState.PAUSED, "confirmation", ({"id": "q"},))
    going = fold(paused, event("RunContinued", 2))
    assert (going.state, going.requirements) == (RunState.RUNNING, ())


def test_reasoning_is_gathered_once() -> None:
    view = folded(
        [
            event("ReasoningContentDelta", reasoning_content="hm"),
            event("ReasoningStep", reasoning_content="hm"),
            event("ReasoningStep", reasoning_content="next"),
            event("RunContent", content="x", reasoning_content="!"),
        ]
    )
    assert view.reasoning == "hm\n\nnext!"


def test_the_run_id_of_the_first_event_counts() -> None:
    """A durable queue mints its own."""
    assert folded(
        [event("RunStarted", 0, run_id="theirs"), event("RunContent", 1, run_id="theirs", content="a")]
    ) == RunView(run_id="theirs", state=RunState.RUNNING, text="a", last_index=1)


def test_a_snapshot_stands_for_the_events_that_are_gone() -> None:
    view = folded([event("RunContent", 0, content="one ")])
    stored = event(
        SNAPSHOT_EVENT, status="COMPLETED", content="one two", metrics={"input_tokens": 3, "output_tokens": 4}
    )
    over = fold(view, stored)
    assert (over.state, over.text, over.input_tokens, over.output_tokens) == (RunState.COMPLETED, "one two", 3, 4)
    assert fold(view, event(SNAPSHOT_EVENT, status="RUNNING")).state is RunState.RUNNING
    assert fold(view, event(SNAPSHOT_EVENT, status="ERROR", content="oh")).error is not None


def test_only_the_run_s_own_end_is_an_ending() -> None:
    assert ending(event("RunCompleted"), "r") is RunState.COMPLETED
    assert ending(event("WorkflowPaused"), "r") is RunState.PAUSED
    assert ending(event("RunCompleted", run_id="m", parent_run_id="r"), "r") is None
    assert ending(event("RunContent", content="x"), "r") is None
