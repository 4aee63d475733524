"""Both READMEs are held to the code, and to each other."""

import ast
import dataclasses
import importlib
import re
import shutil
from pathlib import Path

import click
import pytest

from agno_lark import errors
from agno_lark.cli import cli
from agno_lark.feishu.api import OpenApi
from agno_lark.feishu.events import CARD_CLICK, MESSAGE_RECEIVED
from agno_lark.feishu.status import ConnectionState, ConnectionStatus
from agno_lark.intake.policy import Admission
from agno_lark.locale import PHRASES
from agno_lark.sandbox import agentos
from agno_lark.sandbox.control_asks import VERBS, Write
from agno_lark.sandbox.demo_script import Ask, Say, script
from agno_lark.sandbox.local_feishu import LocalFeishu
from agno_lark.settings import SECRETS, Settings
from agno_lark.targets.protocol import TargetInfo
from tools import readme_tables, readme_words
from tools.readme_tables import READMES, ROOT

TEXTS = {lang: (ROOT / file).read_text("utf-8") for lang, file in READMES.items()}
ELSEWHERE = {"HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "OS_SECURITY_KEY", "AGENTOS_"}  # not settings of ours
BOTH = pytest.mark.parametrize("lang", TEXTS)


def section(lang: str, number: int) -> str:
    """The text of the n-th second-level heading."""
    return TEXTS[lang].split("\n## ")[number]


def quoted_codes(text: str) -> set[str]:
    """What stands between backticks, outside of code blocks."""
    return set(re.findall(r"`([^`\n]+)`", re.sub(r"```.*?```", "", text, flags=re.DOTALL)))


def blocks(lang: str, language: str) -> list[str]:
    return re.findall(rf"^ *```{language}\n(.*?)```", TEXTS[lang], re.DOTALL | re.MULTILINE)


def slug(heading: str) -> str:
    """The anchor GitHub gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def test_generated_parts_are_those_of_the_code() -> None:
    stale = [path.name for path in readme_tables.out_of_date()]
    assert not stale, "run `uv run python -m tools.readme_tables`"


def test_a_table_that_differs_from_the_code_is_noticed(tmp_path: Path) -> None:
    for name in (*READMES.values(), ".env.example"):
        shutil.copy(ROOT / name, tmp_path / name)
    changed = TEXTS["zh"].replace("| `FEISHU_APP_ID` |", "| `FEISHU_APPID` |")
    (tmp_path / READMES["zh"]).write_text(changed, "utf-8")
    assert [path.name for path in readme_tables.out_of_date(tmp_path)] == [READMES["zh"]]
    (tmp_path / READMES["en"]).write_text("# empty", "utf-8")
    with pytest.raises(LookupError, match=r"README\.md has no region"):
        readme_tables.out_of_date(tmp_path)


@BOTH
def test_every_setting_secret_file_command_route_and_exit_code_is_told(lang: str) -> None:
    told = quoted_codes(TEXTS[lang])
    assert {name.upper() for name in Settings.model_fields} <= told
    assert {f"{name.upper()}_FILE" for name in SECRETS} <= told
    assert {"/new", "/status", "/cancel", "/stop", "/help"} <= told
    assert {"GET /feishu/status", "GET /healthz", "GET /readyz"} <= told
    kinds = [getattr(errors, name) for name in errors.__all__]
    assert {"0"} | {str(kind.exit_code) for kind in kinds} <= told


@BOTH
def test_settings_named_anywhere_exist(lang: str) -> None:
    names = set(re.findall(r"\b(?:FEISHU|AGENTOS|LARK|BRIDGE|LOG)_[A-Z_]*", TEXTS[lang]))
    known = {name.upper() for name in Settings.model_fields}
    assert names - ELSEWHERE - known - {f"{name.upper()}_FILE" for name in SECRETS} == set()


@BOTH
def test_commands_in_the_examples_exist(lang: str) -> None:
    lines = "\n".join(blocks(lang, "bash")).splitlines()
    called = [re.search(r"uv run agno-lark ?(.*)", line) for line in lines]
    words = [found[1].split("#")[0].split() for found in called if found]
    assert len(words) >= 2
    for name, *rest in filter(None, words):
        command = cli.commands[name]
        options = {opt for option in command.params if isinstance(option, click.Option) for opt in option.opts}
        assert {word for word in rest if word.startswith("--")} <= options
    for file in re.findall(r"(?:python|pytest) ((?:examples|tests|tools)/[\w./]+)", TEXTS[lang]):
        assert (ROOT / file).exists(), file


@BOTH
def test_python_examples_parse_and_import_what_exists(lang: str) -> None:
    code = blocks(lang, "python")
    assert len(code) == 2
    assert sum("FeishuSandbox" in text for text in code) == 1, "tests/acceptance/test_docs_examples.py runs it"
    for text in code:
        tree = compile(text, "README", "exec", ast.PyCF_ONLY_AST | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                module = importlib.import_module(node.module)
                assert all(hasattr(module, name.name) for name in node.names)


@BOTH
def test_internal_links_resolve(lang: str) -> None:
    anchors = {slug(heading) for heading in re.findall(r"^#+ (.+)$", TEXTS[lang], re.MULTILINE)}
    links = re.findall(r"\]\(([^)\s]+)\)", TEXTS[lang])
    assert len(links) > 15
    for link in links:
        if link.startswith("#"):
            assert link[1:] in anchors, link
        elif "://" not in link:
            assert (ROOT / link).is_file(), link


USER_HOSTS = {"127.0.0.1", "localhost", "host.docker.internal", "docs.agno.com", "open.feishu.cn", "open.larksuite.com"}


@pytest.mark.parametrize(
    "name",
    [*READMES.values(), ".env.example", "Dockerfile", ".dockerignore", "tools/readme_words.py"]
    + [f"examples/{path.name}" for path in sorted((ROOT / "examples").glob("*.py"))],
)
def test_no_paths_of_a_machine_and_no_hosts_but_those_a_user_needs(name: str) -> None:
    text = (ROOT / name).read_text("utf-8")
    assert re.findall(r"(?:/work|/root|/home|/tmp|/Users)/\S*", text) == []
    named = {host.rstrip(",.").partition(":")[0] for host in re.findall(r"https?://([^/\s\"'`)<>…]+)", text)}
    assert named <= USER_HOSTS


def test_both_readmes_have_the_same_parts_in_the_same_order() -> None:
    shape = {
        lang: re.findall(r"^(#+) |^ *(```\w+)|^ *<!-- (.+) -->", text, re.MULTILINE) for lang, text in TEXTS.items()
    }
    assert shape["en"] == shape["zh"]
    rows = {lang: len(re.findall(r"^ *\|", text, re.MULTILINE)) for lang, text in TEXTS.items()}
    assert rows["en"] == rows["zh"]
    items = {lang: re.findall(r"^(-|\d+\.) ", text, re.MULTILINE) for lang, text in TEXTS.items()}
    assert items["en"] == items["zh"]


@BOTH
def test_quoted_sentences_are_those_people_see(lang: str) -> None:
    rows = re.findall(r"^\| (.+?) \| (?!---)", section(lang, 10), re.MULTILINE)
    quotes = [quote for row in rows for quote in re.findall(r"[\"“](.+?)[\"”]", row)]
    sources = [path.read_text("utf-8") for path in (ROOT / "src").rglob("*.py")]
    said = "\n".join([*(sentence for phrase in PHRASES.values() for sentence in phrase.values()), *sources])
    assert len(quotes) >= 5
    assert [quote for quote in quotes if quote not in said] == []


@BOTH
def test_the_card_of_an_unknown_outcome_is_called_as_it_is(lang: str) -> None:
    assert PHRASES["turn.unknown"][lang] in section(lang, 5)


@BOTH
def test_suggested_first_messages_show_something(lang: str) -> None:
    found = quoted_codes(section(lang, 1))
    messages = {text for text in found if not text.startswith(("/", ".", "uv ", "apt ", "pipx "))}
    assert len(messages) == 5
    for message in messages:
        first = next(piece for piece in script(Ask(message=message)) if isinstance(piece, Say))
        assert not first.text.startswith(("Hello", "你")) or "earlier" in message or "说过" in message, message


@BOTH
def test_counters_states_and_verbs_named_exist(lang: str) -> None:
    counters = set(re.findall(r"`message\.(\w+)`", TEXTS[lang]))
    assert counters == set(Admission) - {"admitted"} | {"turn", "control", "duplicate", "passed"}
    assert VERBS.keys() <= quoted_codes(TEXTS[lang])


@BOTH
def test_every_part_of_the_status_is_named(lang: str) -> None:
    connection = {field.name for field in dataclasses.fields(ConnectionStatus)} | {"last_frame_age_ms"}
    assert connection <= quoted_codes(readme_words.STATUS_FIELDS["connection"][lang])
    target = {field.name for field in dataclasses.fields(TargetInfo)}
    assert target <= quoted_codes(readme_words.STATUS_FIELDS["target"][lang])
    states = re.search(r"`state`[（ (]+([a-z, 、]+)[)）]", readme_words.STATUS_FIELDS["connection"][lang])
    assert states
    assert set(re.findall("[a-z]+", states[1])) == {*ConnectionState, "starting"}


@BOTH
def test_the_examples_of_the_control_endpoint_write_and_read_in_one_chat(lang: str) -> None:
    (block,) = (text for text in blocks(lang, "bash") if "/sandbox/control/" in text)
    verb = re.search(r"/sandbox/control/(\w+)", block)
    fields = re.search(r"-d '(.+?)'", block)
    read = re.search(r"'chat_id=(.+?)'", block)
    assert verb
    assert fields
    assert read
    ask = VERBS[verb[1]].model_validate_json(fields[1])
    assert isinstance(ask, Write)
    assert ask.chat_id == ask.person == read[1]
    assert LocalFeishu.build().world.chat(read[1]).mode == "p2p"


@BOTH
def test_the_demo_agentos_is_told_as_it_is(lang: str) -> None:
    told = quoted_codes(section(lang, 9))
    ids = {agentos.AGENT_ID, agentos.PLAIN_AGENT_ID, agentos.TEAM_ID, agentos.WORKFLOW_ID}
    assert ids | {agentos._TOKEN_VARIABLE, "--durable-queue"} <= told
    (line,) = (text for text in blocks(lang, "bash") if "sandbox.agentos" in text)
    options = agentos._arguments(line.split("sandbox.agentos")[1].split())
    assert f"AGENTOS_URL=http://{options.host}:{options.port}" in told


@BOTH
def test_the_container_starts_again_by_itself_and_reaches_the_host_on_linux(lang: str) -> None:
    part = section(lang, 7)
    (command,) = (line for line in part.splitlines() if line.startswith("docker run"))
    assert "--restart unless-stopped" in command
    assert {"--add-host=host.docker.internal:host-gateway", "--env-file"} <= quoted_codes(part)


@BOTH
def test_events_and_callback_are_named(lang: str) -> None:
    assert {MESSAGE_RECEIVED, "im.message.recalled_v1", CARD_CLICK} <= quoted_codes(section(lang, 2))


def test_every_call_the_bridge_makes_has_its_scope() -> None:
    calls = {name for name in vars(OpenApi) if not name.startswith("_")} - {"close", "bot_info"}  # those need none
    files = [path for path in (ROOT / "src/agno_lark").rglob("*.py") if not {"sandbox", "feishu"} & set(path.parts)]
    source = "\n".join(path.read_text("utf-8") for path in files)
    made = {name for name in calls if re.search(rf"api\.{name}\(", source)}
    covered = {call for _, told, _ in readme_words.SCOPES.values() for call in told}
    assert "create_card" in made
    assert made <= covered
    assert covered - made == {MESSAGE_RECEIVED}


@BOTH
def test_the_folder_map_is_complete(lang: str) -> None:
    told = re.findall(r"`(\w+)/`", TEXTS[lang].split("<!-- folders -->")[1].split("<!-- /folders -->")[0])
    there = {path.parent.name for path in (ROOT / "src/agno_lark").glob("*/__init__.py")}
    assert set(told) == there
    assert len(told) == len(there)


def test_the_picture_is_a_small_png() -> None:
    data = (ROOT / "docs/demo.png").read_bytes()
    assert data.startswith(b"\x89PNG")
    assert len(data) < 300_000
