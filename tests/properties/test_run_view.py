"""Whatever comes, the view stays true."""

from hypothesis import given, settings
from hypothesis import strategies as st

from agno_lark.targets import SNAPSHOT_EVENT, RunEvent, RunState, RunView, fold
from tests.targets_fixtures import event, folded

UNHURRIED = settings(deadline=None, max_examples=60)  # a busy machine is no finding
DELTAS = st.lists(st.text(max_size=6) | st.sampled_from(["1", "1", "\n", "哈", "$", ",000"]), max_size=30)

NAMES = st.sampled_from(
    [
        *("RunStarted", "RunContent", "RunCompleted", "RunError", "RunCancelled", "RunPaused", "RunContinued"),
        *("TeamRunStarted", "TeamRunContent", "TeamRunCompleted", "TeamToolCallStarted", "TeamRunPaused"),
        *("WorkflowStarted", "StepStarted", "StepCompleted", "StepError", "WorkflowCompleted", "WorkflowPaused"),
        *("ToolCallStarted", "ToolCallCompleted", "ToolCallError", "ReasoningStep", "ReasoningContentDelta"),
        *(SNAPSHOT_EVENT, "replay", "subscribed", "SomethingNew", "", "Team"),
    ]
)
JUNK = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)
TOOLS = st.fixed_dictionaries(
    {},
    optional={
        "tool_call_id": st.sampled_from(["c1", "c2"]) | JUNK,
        "tool_name": st.sampled_from(["weather", "delegate_task_to_member"]) | JUNK,
        "tool_args": JUNK,
        "tool_call_error": JUNK,
        "result": JUNK,
    },
)
DATA = st.fixed_dictionaries(
    {},
    optional={
        "run_id": st.sampled_from(["r", "m", "n"]) | JUNK,
        "parent_run_id": st.sampled_from(["r", "m"]) | JUNK,
        "workflow_run_id": st.sampled_from(["r"]) | JUNK,
        "step_id": st.sampled_from(["a", "b"]) | JUNK,
        "content": st.text(max_size=5) | JUNK,
        "reasoning_content": JUNK,
        "tool": TOOLS | JUNK,
        "requirements": JUNK,
        "status": st.sampled_from(["RUNNING", "PAUSED", "COMPLETED", "ERROR"]) | JUNK,
        "created_at": JUNK,
        "metrics": JUNK,
        "error": JUNK,
    },
)
EVENTS = st.builds(RunEvent, name=NAMES, index=st.none() | st.integers(-2, 40), data=DATA)


@UNHURRIED
@given(deltas=DELTAS)
def test_the_text_is_the_concatenation_of_the_deltas(deltas: list[str]) -> None:
    events = [event("RunContent", n, content=delta) for n, delta in enumerate(deltas)]
    whole = "".join(deltas)
    view = folded(events)
    assert view.text == whole
    assert fold(view, event("RunCompleted", len(deltas), content=whole)).text == whole


@UNHURRIED
@given(deltas=DELTAS, final=st.text(max_size=40))
def test_no_final_content_takes_away_what_was_streamed(deltas: list[str], final: str) -> None:
    view = folded([*(event("RunContent", content=delta) for delta in deltas), event("RunCompleted", content=final)])
    rest = iter(view.text)
    assert all(letter in rest for letter in "".join(deltas))


@UNHURRIED
@given(events=st.lists(EVENTS, max_size=25))
def test_any_events_in_any_order_are_survived(events: list[RunEvent]) -> None:
    view = folded(events)
    assert len({step.id for step in view.steps}) == len(view.steps)


@UNHURRIED
@given(events=st.lists(EVENTS, max_size=25))
def test_a_terminal_state_sticks_whatever_follows(events: list[RunEvent]) -> None:
    over = folded([event("RunStarted"), event("RunContent", content="x"), event("RunCancelled")])
    later = folded(events, over)
    assert (later.state, later.text) == (RunState.CANCELLED, over.text)


@UNHURRIED
@given(events=st.lists(EVENTS, max_size=25), data=st.data())
def test_a_replay_folds_to_the_same_view(events: list[RunEvent], data: st.DataObject) -> None:
    numbered = [RunEvent(name=one.name, index=n, data=one.data) for n, one in enumerate(events)]
    view = folded(numbered)
    again = data.draw(st.integers(0, len(numbered)))
    assert folded(numbered[again:], view) == view
    assert folded([*numbered[:again], *numbered]) == view


@UNHURRIED
@given(cut=st.integers(0, 12), deltas=st.lists(st.sampled_from(["1", "0", "ab"]), min_size=12, max_size=12))
def test_a_cut_and_a_resume_neither_double_nor_lose_text(cut: int, deltas: list[str]) -> None:
    events = [event("RunContent", n, content=delta) for n, delta in enumerate(deltas)]
    before = folded(events[:cut], RunView(run_id="r"))
    after = folded([one for one in events if one.index is not None and one.index > before.last_index], before)
    assert after.text == "".join(deltas)
