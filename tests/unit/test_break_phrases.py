"""No sentence is kept that nobody says, and none is said that is not there."""

import re
from pathlib import Path

import agno_lark
from agno_lark.commands.runs import answer_cancel, answer_decision
from agno_lark.locale import PHRASES
from agno_lark.replies import Resolution
from agno_lark.targets import FaultReason
from agno_lark.turns import Decided, RunPhase

SPELLED = r"""["']([a-z]+(?:\.[a-z_]+)+)["']"""
SOURCES = Path(agno_lark.__file__).parent
MADE = {f"fault.{reason}" for reason in FaultReason} | {f"run.{phase}" for phase in RunPhase} | {"fault.internal"}
MADE |= {f"cancel.{result}" for result in ("requested", "nothing", "not_found", "over")}
MADE |= {f"turn.{resolution}" for resolution in Resolution} | {"retry.done", "dismiss.done"}
MADE |= {f"decide.{result}" for result in ("already", "nothing", "answered", "not_found")}
MADE |= {f"turn.unknown.{kind}" for kind in ("body", "begun", "superseded")} | {"fault.stop_unheard"}


def test_every_sentence_is_said_somewhere() -> None:
    folders = ("app.py", "commands", "intake", "replies", "turns", "jobs", "web", "cli", "pauses", "approvals")
    files = [file for name in folders for file in [SOURCES / name, *(SOURCES / name).rglob("*.py")] if file.is_file()]
    said = {key for file in files for key in re.findall(SPELLED, file.read_text("utf-8"))}
    assert {key for key in PHRASES if key not in said | MADE} == set()


def test_what_is_made_of_a_word_has_its_sentence() -> None:
    assert MADE - PHRASES.keys() == set()
    for result in ("requested", "nothing", "not_found", "over", "arguments"):
        assert answer_cancel({"result": result, "run": "1a2b3c4d"}, "zh")
    for result in (*Decided, "answered", "not_found", "arguments"):
        assert answer_decision("retry", {"result": str(result), "run": "1a2b3c4d"}, "en")
        assert answer_decision("dismiss", {"result": str(result)}, "zh")
