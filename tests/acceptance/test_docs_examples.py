"""The examples run as their first lines say."""

import ast
import re
import runpy
from collections.abc import Iterator
from contextlib import AsyncExitStack, closing
from pathlib import Path
from typing import Any, Self

import pytest
from agno.db.sqlite import SqliteDb

from agno_lark import LarkInterface, Settings
from agno_lark.sandbox.agentos import DemoAgentOS
from agno_lark.testing import FeishuSandbox
from tests.bridge_fixtures import answer_to
from tests.demo_agentos_fixtures import demo_agentos, free_port
from tools.readme_tables import READMES, ROOT

MARTA = "Marta Weiss"
TOKEN = "the right one"


@pytest.fixture(scope="module")
def guarded() -> Iterator[DemoAgentOS]:
    """A demo AgentOS that asks for TOKEN."""
    with demo_agentos(token=TOKEN) as demo:
        yield demo


@pytest.fixture(autouse=True)
def _clean_place(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A working directory without a `.env`."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("AGNO_TELEMETRY", "false")


def example(name: str) -> dict[str, Any]:
    """The names an example defines."""
    return runpy.run_path(str(ROOT / "examples" / name))


async def test_the_embedding_app_answers_in_the_sandbox(
    monkeypatch: pytest.MonkeyPatch, feishu: FeishuSandbox, tmp_path: Path
) -> None:
    monkeypatch.setenv("FEISHU_APP_ID", feishu.app_id)
    monkeypatch.setenv("FEISHU_APP_SECRET", feishu.app_secret)
    monkeypatch.setenv("LARK_API_BASE_URL", feishu.url)
    app = example("embed.py")["build_app"](str(tmp_path / "sessions.sqlite3"))
    assert "/feishu/status" in app.openapi()["paths"]
    async with app.router.lifespan_context(app):
        await feishu.until_connected(within_s=10)
        chat = feishu.direct_chat(MARTA)
        await feishu.write(MARTA, chat, "good morning")
        assert "good morning" in (await answer_to(feishu, chat)).text
    await feishu.until(lambda _: feishu.connection_count == 0)


@pytest.mark.parametrize("kind", ["agent", "team", "workflow"])
def test_the_remote_example_asks_what_the_settings_name(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], agentos: DemoAgentOS, kind: str
) -> None:
    monkeypatch.setattr("sys.argv", ["remote.py", "good", "morning"])
    for name, value in {
        "FEISHU_APP_ID": "cli_x",
        "FEISHU_APP_SECRET": "x",
        "AGENTOS_URL": agentos.url,
        "AGENTOS_TARGET_TYPE": kind,
        "AGENTOS_TARGET_ID": f"demo-{kind}",
    }.items():
        monkeypatch.setenv(name, value)
    assert example("remote.py")["main"]() == 0
    assert "good morning" in capsys.readouterr().out


def test_the_remote_example_tells_what_is_missing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    for name in ("FEISHU_APP_ID", "FEISHU_APP_SECRET", "AGENTOS_URL", "AGENTOS_TARGET_ID"):
        monkeypatch.delenv(name, raising=False)
    assert example("remote.py")["main"]() == 2
    assert "AGENTOS_URL: missing" in capsys.readouterr().err


@pytest.mark.parametrize("kind", ["agent", "team", "workflow"])
@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"AGENTOS_TOKEN": "another"}, "AGENTOS_TOKEN must be its OS_SECURITY_KEY"),
        ({"AGENTOS_TARGET_ID": "nobody"}, "/config for its ids"),
        ({"AGENTOS_URL": ""}, "is the AgentOS running there"),
    ],
)
def test_the_remote_example_says_in_one_sentence_what_is_wrong(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    guarded: DemoAgentOS,
    kind: str,
    wrong: dict[str, str],
    said: str,
) -> None:
    monkeypatch.setattr("sys.argv", ["remote.py", "hello"])
    right = {
        "FEISHU_APP_ID": "cli_x",
        "FEISHU_APP_SECRET": "x",
        "AGENTOS_URL": guarded.url,
        "AGENTOS_TOKEN": TOKEN,
        "AGENTOS_TARGET_TYPE": kind,
        "AGENTOS_TARGET_ID": f"demo-{kind}",
    }
    for name, value in (right | wrong).items():
        monkeypatch.setenv(name, value or f"http://127.0.0.1:{free_port()}")
    assert example("remote.py")["main"]() == 1
    out, err = capsys.readouterr()
    assert out == ""
    assert said in err
    assert len(err.splitlines()) == 1


@pytest.mark.parametrize("readme", READMES.values())
async def test_the_readmes_test_of_a_bot_passes_as_it_stands(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, readme: str
) -> None:
    with closing(SqliteDb(db_file=str(tmp_path / "sessions.sqlite3"))) as db:
        agent = example("sandbox_test.py")["my_agent"](db)

        class WithABot(FeishuSandbox):
            """In the place of the line that says "start the bot"."""

            async def __aenter__(self) -> Self:
                self.bot = AsyncExitStack()
                await super().__aenter__()
                settings = Settings.given(
                    feishu_app_id=self.app_id,
                    feishu_app_secret=self.app_secret,
                    lark_api_base_url=self.url,
                    feishu_state_db=tmp_path / "state.sqlite3",
                )
                bridge = LarkInterface(target=agent, settings=settings).bridge
                await self.bot.enter_async_context(bridge.running())
                return self

            async def __aexit__(self, *error: Any) -> None:
                await self.bot.aclose()
                await super().__aexit__(*error)

        text = (ROOT / readme).read_text("utf-8")
        (snippet,) = (block for block in re.findall(r"^```python\n(.*?)```", text, re.S | re.M) if "FeishuS" in block)
        names: dict[str, Any] = {"FeishuSandbox": WithABot}
        await eval(compile(snippet, readme, "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT), names)
    assert names["answer"].author == names["feishu"].world.app.bot_name
    assert not names["answer"].streaming
    assert len(names["feishu"].from_bot(names["chat"])) == 1


async def test_the_example_of_a_test_passes(tmp_path: Path) -> None:
    names = example("sandbox_test.py")
    await names["conversation"](tmp_path)
    assert callable(names["test_my_bot_answers"])
