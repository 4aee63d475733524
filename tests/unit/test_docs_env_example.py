"""`.env.example` names every setting, with the defaults, and nothing else."""

import re
from pathlib import Path

import pytest

from agno_lark.errors import SettingsError
from agno_lark.settings import SECRETS, Settings, load_settings
from tools.readme_tables import ROOT

EXAMPLE = ROOT / ".env.example"
REQUIRED = {
    "FEISHU_APP_ID": "cli_x",
    "FEISHU_APP_SECRET": "secret",
    "AGENTOS_URL": "http://127.0.0.1:7777",
    "AGENTOS_TARGET_ID": "helper",
}


def lines() -> list[str]:
    return EXAMPLE.read_text("utf-8").splitlines()


def filled(*, uncommented: bool) -> str:
    text = EXAMPLE.read_text("utf-8")
    for name, value in REQUIRED.items():
        text = text.replace(f"\n{name}=\n", f"\n{name}={value}\n")
    return re.sub(r"^#(?=[A-Z_]+=)", "", text, flags=re.MULTILINE) if uncommented else text


def test_every_setting_is_there_once_and_nothing_else() -> None:
    names = [found[1] for line in lines() if (found := re.fullmatch(r"#?([A-Z_]+)=.*", line))]
    assert sorted(names) == sorted(name.upper() for name in Settings.model_fields)


@pytest.mark.parametrize("uncommented", [False, True])
def test_filled_in_it_loads_with_the_defaults(tmp_path: Path, uncommented: bool) -> None:
    (tmp_path / ".env").write_text(filled(uncommented=uncommented), "utf-8")
    loaded = load_settings(env_file=tmp_path / ".env", environ={})
    assert loaded == load_settings(env_file=None, environ=REQUIRED)


def test_as_it_is_it_asks_for_what_is_required() -> None:
    with pytest.raises(SettingsError) as caught:
        load_settings(env_file=EXAMPLE, environ={})
    assert {problem.split(":")[0] for problem in caught.value.problems} == set(REQUIRED)


def test_required_settings_come_first_and_secrets_are_empty() -> None:
    at = {line.split("=")[0].lstrip("#"): number for number, line in enumerate(lines()) if "=" in line}
    optional = set(at) - set(REQUIRED) - {name.upper() for name in SECRETS} - {"# Every secret may"}
    first_optional = min(at[name] for name in optional if name.isupper())
    assert all(at[name] < first_optional for name in REQUIRED)
    assert all(f"{name.upper()}=" in lines() for name in SECRETS)


def test_every_setting_has_a_comment_of_one_line_above_it() -> None:
    for above, line in zip(lines(), lines()[1:], strict=False):
        if re.match(r"#?[A-Z_]+=", line):
            assert re.match(r"# \S.{5,}\.$", above), line
