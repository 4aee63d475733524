"""The Dockerfile keeps what the README says of the container."""

import json
import re
from fnmatch import fnmatch

from agno_lark.cli import cli
from agno_lark.settings import Settings
from tools.readme_tables import ROOT

TEXT = (ROOT / "Dockerfile").read_text("utf-8")
STEPS = [line for line in re.sub(r"\\\n", " ", TEXT).splitlines() if line and not line.startswith("#")]
BUILD, RUN = (part.splitlines() for part in "\n".join(STEPS).split("\nFROM "))


def steps(word: str, of: list[str]) -> list[str]:
    return [line.removeprefix(word).strip() for line in of if line.startswith(f"{word} ")]


def environment() -> dict[str, str]:
    return dict(pair.split("=", 1) for line in steps("ENV", RUN) for pair in line.split())


def test_it_starts_the_daemon_by_itself_and_stops_on_sigterm() -> None:
    assert json.loads(steps("ENTRYPOINT", RUN)[0]) == ["agno-lark"], "no shell between the signal and the daemon"
    assert steps("STOPSIGNAL", RUN) == ["SIGTERM"]


def test_it_runs_without_rights_in_a_volume_of_its_own() -> None:
    (user,) = steps("USER", RUN)
    assert user not in ("root", "0")
    (volume,) = json.loads(steps("VOLUME", RUN)[0])
    assert environment()["FEISHU_STATE_DB"].startswith(f"{volume}/")
    create = next(line for line in steps("RUN", RUN) if "install -d" in line)
    assert f"-o {user} " in create
    assert create.endswith(f" {volume}")


def test_the_program_checks_its_own_health() -> None:
    (check,) = steps("HEALTHCHECK", RUN)
    program, command = json.loads(check.split("CMD", 1)[1])
    assert program == "agno-lark"
    assert command in cli.commands


def test_its_environment_holds_settings_that_exist_and_leaves_ports_closed() -> None:
    ours = {name for name in environment() if name not in {"PATH", "PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE"}}
    assert ours <= {name.upper() for name in Settings.model_fields}
    assert "BRIDGE_HOST" not in ours
    assert steps("EXPOSE", RUN) == []
    assert float(environment()["BRIDGE_DRAIN_TIMEOUT"]) < 10, "docker stop kills after 10 s"


def test_only_locked_dependencies_of_the_daemon_are_installed_and_compiled() -> None:
    syncs = [line for line in steps("RUN", BUILD) if line.startswith("uv sync")]
    assert len(syncs) == 2
    assert all("--frozen" in line and "--no-dev" in line for line in syncs)
    assert "--no-editable" in syncs[-1]
    assert "UV_COMPILE_BYTECODE=1" in TEXT


def test_what_is_copied_exists_and_is_not_ignored() -> None:
    kept = [line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")]
    sources = [source for line in steps("COPY", BUILD) for source in line.split()[:-1]]
    assert {"pyproject.toml", "uv.lock", "src"} <= set(sources)
    for source in sources:
        assert (ROOT / source).exists(), source
        assert any(fnmatch(source, pattern) for pattern in kept), source
    project = (ROOT / "pyproject.toml").read_text("utf-8")
    assert re.search(r'^readme = "README.md"$', project, re.MULTILINE), "the build needs it, so it is copied"
