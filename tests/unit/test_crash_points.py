"""Crash points: refused outside a sandbox, known by name, and each of them stands in the code, once."""

import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agno_lark import crash
from agno_lark.errors import SettingsError

SOURCES = Path(crash.__file__).parent
REACHED = re.compile(r'crash\.reached\("([a-z_.]+)"\)')


def test_every_point_stands_in_the_code_and_nothing_else_does() -> None:
    found = [name for path in SOURCES.rglob("*.py") for name in REACHED.findall(path.read_text("utf-8"))]
    assert sorted(found) == sorted(crash.CRASH_POINTS)


def test_a_real_feishu_and_a_crash_point_do_not_go_together() -> None:
    with pytest.raises(SettingsError, match=r"AGNO_LARK_CRASH_AT: only for tests"):
        crash.arm("turn.claimed", in_sandbox=False)
    crash.reached("turn.claimed")  # and nothing is armed


@pytest.mark.parametrize("given", ["turn.nowhere", "turn.claimed:often", "turn"])
def test_a_wrong_point_is_told_with_those_there_are(given: str) -> None:
    with pytest.raises(SettingsError, match=r"expected one of accept\.received, "):
        crash.arm(given, in_sandbox=True)


@pytest.mark.parametrize(("given", "reached"), [("turn.claimed", 1), ("turn.claimed:3", 3)])
def test_the_process_is_killed_at_its_point_and_not_before(given: str, reached: int) -> None:
    program = (
        f"from agno_lark import crash; crash.arm({given!r}, in_sandbox=True)\n"
        "for number in range(1, 9):\n"
        "    print(number, flush=True); crash.reached('turn.closed'); crash.reached('turn.claimed')"
    )
    ended = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=20)
    assert ended.returncode == -signal.SIGKILL
    assert ended.stdout.split()[-1] == str(reached)
