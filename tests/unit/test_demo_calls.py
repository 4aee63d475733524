"""How often the demo models were asked."""

from pathlib import Path

from agno_lark.sandbox.demo_calls import ModelCalls, read_calls


def test_calls_are_counted_by_session_and_by_run() -> None:
    calls = ModelCalls()
    calls.note(session_id="s1", run_id="r1")
    calls.note(session_id="s1", run_id="r2")
    calls.note(session_id="s1", run_id="r2")
    assert calls.as_json() == {"total": 3, "by_session": {"s1": 3}, "by_run": {"r1": 1, "r2": 2}}


def test_a_file_keeps_what_a_former_life_counted(tmp_path: Path) -> None:
    path = str(tmp_path / "calls.jsonl")
    ModelCalls(path=path).note(session_id="s1", run_id="r1", turn_id="t1", role="agent")
    later = ModelCalls(path=path)
    assert later.as_json()["total"] == 1
    later.note(session_id="s2", run_id="r2")
    assert later.as_json() == {"total": 2, "by_session": {"s1": 1, "s2": 1}, "by_run": {"r1": 1, "r2": 1}}


def test_a_call_in_the_file_tells_its_turn_and_its_time(tmp_path: Path) -> None:
    path = tmp_path / "calls.jsonl"
    ModelCalls(path=str(path)).note(session_id="s1", run_id="r1", turn_id="t1", role="agent")
    ModelCalls(path=str(path)).note(session_id="s1", run_id="r2")
    first, second = read_calls(path)
    assert (first.turn_id, first.role) == ("t1", "agent")
    assert second.turn_id == ""
    assert 0 < first.time_ms <= second.time_ms


def test_where_there_is_no_file_nobody_was_asked(tmp_path: Path) -> None:
    assert read_calls(tmp_path / "none") == []
    assert ModelCalls(path=str(tmp_path / "none")).as_json()["total"] == 0
