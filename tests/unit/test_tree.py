"""The tree itself: short modules, said packages, one set of names, phrases in both languages."""

import ast
import importlib
import pkgutil
import re
import string
from pathlib import Path

import pytest

import agno_lark
from agno_lark.errors import AgnoLarkError
from agno_lark.locale import PHRASES, duration, language_of_text, say

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "src").rglob("*.py"))
TESTS = sorted((ROOT / "tests").rglob("*.py"))
MOST_LINES = 500
VAGUE = {"utils", "util", "helpers", "helper", "manager", "base", "misc", "common"}


def test_no_module_is_longer_than_500_lines() -> None:
    long = [path.name for path in [*SOURCES, *TESTS] if len(path.read_text("utf-8").splitlines()) > MOST_LINES]
    assert not long


def test_no_module_has_a_name_that_says_nothing() -> None:
    assert not [path for path in SOURCES if path.stem in VAGUE]


def test_every_module_says_what_it_is_for() -> None:
    silent = [path for path in SOURCES if not ast.get_docstring(ast.parse(path.read_text("utf-8")))]
    assert not silent


def test_a_package_says_what_enters_leaves_and_survives_in_ten_lines() -> None:
    for path in SOURCES:
        if path.name == "__init__.py":
            said = ast.get_docstring(ast.parse(path.read_text("utf-8"))) or ""
            assert len(said.splitlines()) <= 10, path


@pytest.mark.parametrize("name", [module.name for module in pkgutil.iter_modules(agno_lark.__path__, "agno_lark.")])
def test_what_a_package_promises_is_there(name: str) -> None:
    module = importlib.import_module(name)
    names = getattr(module, "__all__", None)
    assert names, f"{name} has no __all__"
    assert len(set(names)) == len(names)
    assert all(hasattr(module, each) for each in names)


def test_the_public_names_are_these() -> None:
    assert agno_lark.__all__ == sorted(agno_lark._HOMES)
    assert all(getattr(agno_lark, name) is not None for name in agno_lark.__all__)
    with pytest.raises(AttributeError, match="nothing"):
        agno_lark.nothing  # noqa: B018


def test_the_version_is_the_projects() -> None:
    assert f'version = "{agno_lark.__version__}"' in (ROOT / "pyproject.toml").read_text("utf-8")


def test_except_exception_stands_at_borders_only() -> None:
    found = {
        str(path.relative_to(ROOT / "src" / "agno_lark"))
        for path in SOURCES
        if re.search(r"except (Base)?Exception\b", path.read_text("utf-8")) and "sandbox" not in path.parts
    }
    borders = {"feishu/deliveries.py", "jobs/runner.py"}
    transactions = {"store/engine.py", "store/migrate.py"}  # what undoes a transaction must undo it whatever happened
    foreign = {
        "feishu/frames.py",
        "targets/local.py",
    }  # the SDK's decoder, an agent of the embedding app: raise anything
    assert found <= borders | transactions | foreign


def test_every_phrase_is_there_in_both_languages_with_the_same_values() -> None:
    for key, phrase in PHRASES.items():
        assert set(phrase) == {"en", "zh"}, key
        values = [{name for _, name, _, _ in string.Formatter().parse(text) if name} for text in phrase.values()]
        assert values[0] == values[1], key
        assert re.search("[\u4e00-\u9fff]", phrase["zh"]) or key == "turn.tokens", key


def test_every_phrase_an_error_names_exists() -> None:
    def below(kind: type[AgnoLarkError]) -> list[type[AgnoLarkError]]:
        return [kind, *(found for child in kind.__subclasses__() for found in below(child))]

    assert {kind.exit_code for kind in below(AgnoLarkError)} <= {1, 2, 3, 4, 5}


@pytest.mark.parametrize(
    ("ms", "en", "zh"),
    [
        (0, "0.0 s", "0.0 秒"),
        (1234, "1.2 s", "1.2 秒"),
        (12_900, "12 s", "12 秒"),
        (185_000, "3 min 5 s", "3 分 5 秒"),
        (120_000, "2 min", "2 分"),
        (3_725_000, "1 h 2 min", "1 小时 2 分"),
        (360_000_000, "4 days", "4 天"),
        (-5, "0.0 s", "0.0 秒"),
    ],
)
def test_durations_are_said_as_people_say_them(ms: int, en: str, zh: str) -> None:
    assert duration(ms, "en") == en
    assert duration(ms, "zh") == zh


def test_a_languages_letters_tell_it() -> None:
    assert language_of_text("hello 你好") == "zh"
    assert language_of_text("hello") == "en"
    assert language_of_text("42 ?!") is None
    assert say("help.title", "zh") == "使用说明"
