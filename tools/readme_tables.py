"""Writes the tables and diagrams of both READMEs, and `.env.example`, from the code.

    uv run python -m tools.readme_tables            rewrite what has changed
    uv run python -m tools.readme_tables --check    exit code 1 and a list where something is out of date

A generated region stands between `<!-- generated: name -->` and `<!-- /generated -->`; what is around it is written by
people. Words the code does not hold are in `readme_words.py`.
"""

import asyncio
import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from pathlib import Path
from textwrap import indent
from typing import Any

import click
from fastapi.routing import APIRoute
from pydantic import SecretStr

from agno_lark.app import Bridge
from agno_lark.cli import EXIT_CODES, cli
from agno_lark.commands.parse import ALIASES, NAMES
from agno_lark.errors import SettingsError
from agno_lark.jobs.job import TRANSITIONS
from agno_lark.sandbox.control_asks import VERBS
from agno_lark.settings import SECRETS, Settings, load_settings
from agno_lark.turns import RUN_TRANSITIONS
from agno_lark.web import bridge_router
from tools import readme_words as words

__all__ = ["READMES", "ROOT", "env_example", "main", "out_of_date", "region"]

ROOT = Path(__file__).resolve().parent.parent
READMES = {"en": "README.md", "zh": "READM_ZH.md"}

_REGION = re.compile(r"^( *)<!-- generated: ([a-z-]+) -->\n.*?<!-- /generated -->", re.DOTALL | re.MULTILINE)


def region(name: str, lang: str) -> str:
    """The text of the region `name` in `lang` (en or zh)."""
    return _REGIONS[name](lang).strip() + "\n"


def env_example() -> str:
    """The whole of `.env.example`: required settings first, the others commented out with their defaults."""
    required = _required()
    first = [name for name in Settings.model_fields if name in required or name in SECRETS]
    lines = [
        "# Settings of agno-lark. Copy this file to .env and fill in the first part; the README explains each.",
        "# Every secret may also be read from a file: NAME_FILE=path instead of NAME=value.",
        "# This file is written by tools/readme_tables.py.",
    ]
    for name in first:
        lines += ["", f"# {_comment(name)}", f"{name.upper()}="]
    lines += ["", "# What follows may be left out; the values are the defaults."]
    for name in Settings.model_fields:
        if name not in first:
            lines += ["", f"# {_comment(name)}", f"#{name.upper()}={_default(name)}"]
    return "\n".join(lines) + "\n"


def out_of_date(root: Path = ROOT) -> dict[Path, str]:
    """Files whose generated parts differ from the code, with the text they should have. Raises LookupError for a
    region that is unknown or missing."""
    wanted = {root / file: _fill((root / file).read_text("utf-8"), lang) for lang, file in READMES.items()}
    wanted[root / ".env.example"] = env_example()
    return {path: text for path, text in wanted.items() if not path.is_file() or path.read_text("utf-8") != text}


def main(arguments: list[str]) -> int:
    """Rewrite or, with --check, only tell. Returns the exit code."""
    stale = out_of_date()
    for path, text in stale.items():
        if "--check" in arguments:
            sys.stderr.write(f"{path.name} is out of date: run `uv run python -m tools.readme_tables`\n")
        else:
            path.write_text(text, "utf-8")
            sys.stdout.write(f"wrote {path.name}\n")
    return 1 if stale and "--check" in arguments else 0


def _fill(text: str, lang: str) -> str:
    missing = _REGIONS.keys() - {found[2] for found in _REGION.finditer(text)}
    if missing:
        raise LookupError(f"{READMES[lang]} has no region {', '.join(sorted(missing))}")

    def written(found: re.Match[str]) -> str:
        text = f"<!-- generated: {found[2]} -->\n{region(found[2], lang)}<!-- /generated -->"
        return indent(text, found[1])  # a region may stand in a list

    return _REGION.sub(written, text)


def _table(name: str, lang: str, rows: Iterable[tuple[str, ...]]) -> str:
    heads = words.HEADINGS[name][lang]
    lines = [heads, tuple("---" for _ in heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '\\|') for cell in line)} |" for line in lines)


def _same_keys(what: str, code: Iterable[Any], told: Iterable[Any]) -> None:
    """The words must be those of the code, no more and no fewer."""
    odd = set(code) ^ set(told)
    if odd:
        listed = ", ".join(sorted(map(repr, odd)))
        raise LookupError(f"tools/readme_words.py, {what}: {listed} should be added or taken out")


# -- settings --------------------------------------------------------------------------------------------------------


def _required() -> list[str]:
    """Fields without which `load_settings` refuses to start, as it says itself."""
    try:
        load_settings(env_file=None, environ={})
    except SettingsError as error:
        missing = {problem.split(":")[0].lower() for problem in error.problems}
        return [name for name in Settings.model_fields if name in missing]
    return []


def _default(name: str) -> str:
    value = Settings.model_fields[name].get_default()
    match value:
        case SecretStr():
            return ""
        case frozenset():
            return ",".join(sorted(value))
        case StrEnum():
            return value.value
        case bool():
            return str(value).lower()
        case float():
            return f"{value:g}"
        case _:
            return str(value)


def _comment(name: str) -> str:
    return (Settings.model_fields[name].description or "").replace("`", "")


def _settings(lang: str) -> str:
    _same_keys("SETTINGS_ZH", Settings.model_fields, words.SETTINGS_ZH)
    required = _required()
    rows = []
    for name, field in Settings.model_fields.items():
        shown = f"`{name.upper()}`"
        if name in SECRETS:
            shown += " " + words.TERMS["or_file"][lang].format(name=f"`{name.upper()}_FILE`")
        default = f"`{_default(name)}`" if name not in required and _default(name) else words.TERMS["empty"][lang]
        meaning = (field.description or "") if lang == "en" else words.SETTINGS_ZH[name]
        rows.append((shown, words.TERMS["required"][lang] if name in required else default, meaning))
    return _table("settings", lang, rows)


# -- commands, exit codes --------------------------------------------------------------------------------------------


def _chat_commands(lang: str) -> str:
    _same_keys("CHAT_COMMANDS", NAMES, words.CHAT_COMMANDS)
    rows = []
    for name in NAMES:
        aliases = [f"`/{alias}`" for alias, meant in ALIASES.items() if meant == name]
        more = "".join(" " * (lang == "en") + words.TERMS["short_for"][lang].format(alias=alias) for alias in aliases)
        rows.append((f"`/{name}`", words.CHAT_COMMANDS[name][lang] + more))
    return _table("chat-commands", lang, rows)


def _usage(name: str, command: click.Command) -> str:
    arguments = [param.metavar or "" for param in command.params if isinstance(param, click.Argument)]
    options = [
        f"[{option.opts[-1]}]" if option.is_flag else f"[{option.opts[-1]} {_placeholder(option)}]"
        for option in command.params
        if isinstance(option, click.Option) and option.expose_value
    ]
    return " ".join(filter(None, ["agno-lark", name, *arguments, *options]))


def _placeholder(option: click.Option) -> str:
    match option.type:
        case click.IntRange():
            return "N"
        case click.Path():
            return "FILE"
        case _:
            return (option.name or "").upper()


def _cli_commands(lang: str) -> str:
    commands: dict[str, click.Command] = {"": cli}
    for name, command in cli.commands.items():
        below = command.commands if isinstance(command, click.Group) else None
        commands |= {f"{name} {sub}": found for sub, found in below.items()} if below else {name: command}
    _same_keys("CLI_COMMANDS_ZH", commands, words.CLI_COMMANDS_ZH)
    rows = []
    for name, command in commands.items():
        first = " ".join((command.help or "").split("\n\n")[0].split())
        rows.append((f"`{_usage(name, command)}`", first if lang == "en" else words.CLI_COMMANDS_ZH[name]))
    return _table("cli-commands", lang, rows)


def _exit_codes(lang: str) -> str:
    told = {int(code): meaning for code, meaning in re.findall(r"^\s+(\d+)\s+(.+)$", EXIT_CODES, re.MULTILINE)}
    _same_keys("EXIT_CODES_ZH", told, words.EXIT_CODES_ZH)
    shown = told if lang == "en" else words.EXIT_CODES_ZH
    return _table("exit-codes", lang, [(f"`{code}`", shown[code]) for code in told])


# -- routes, verbs ---------------------------------------------------------------------------------------------------


def _bridge() -> Bridge:
    required = dict.fromkeys(_required(), "x") | {"agentos_url": "http://127.0.0.1:7777"}
    return Bridge(Settings.given(**required))


def _routes(lang: str) -> str:
    routes = [route for route in bridge_router(_bridge()).routes if isinstance(route, APIRoute)]
    found = {route.path: route for route in routes if route.include_in_schema}
    _same_keys("ROUTES_ZH", found, words.ROUTES_ZH)
    rows = []
    for path, route in found.items():
        told = " ".join((route.endpoint.__doc__ or "").split())
        methods = "/".join(sorted((route.methods or set()) - {"HEAD"}))  # of course it may be asked for alone
        rows.append((f"`{methods} {path}`", told if lang == "en" else words.ROUTES_ZH[path]))
    return _table("routes", lang, rows)


def _status_fields(lang: str) -> str:
    status = asyncio.run(_bridge().status())
    _same_keys("STATUS_FIELDS", status, words.STATUS_FIELDS)
    return _table("status-fields", lang, [(f"`{name}`", words.STATUS_FIELDS[name][lang]) for name in status])


def _control_verbs(lang: str) -> str:
    _same_keys("CONTROL_VERBS_ZH", VERBS, words.CONTROL_VERBS_ZH)
    rows = []
    for name, ask in VERBS.items():
        fields = f"`{ask.fields_told()}`" if ask.model_fields else ""
        told = " ".join((ask.__doc__ or "").split())
        rows.append((f"`{name}`", fields, told if lang == "en" else words.CONTROL_VERBS_ZH[name]))
    return _table("control-verbs", lang, rows)


# -- Feishu's side, states -------------------------------------------------------------------------------------------


def _scopes(lang: str) -> str:
    needed, optional = words.TERMS["needed"][lang], words.TERMS["optional"][lang]
    rows = [
        (f"`{scope}`", needed if is_needed else optional, why[lang])
        for scope, (is_needed, _, why) in words.SCOPES.items()
    ]
    listed = ",\n".join(f'      "{scope}"' for scope, (is_needed, _, _) in words.SCOPES.items() if is_needed)
    as_json = f'```json\n{{\n  "scopes": {{\n    "tenant": [\n{listed}\n    ],\n    "user": []\n  }}\n}}\n```'
    return f"{_table('scopes', lang, rows)}\n\n{as_json}"


def _diagram(transitions: Mapping[Any, frozenset[Any]]) -> str:
    states = list(transitions)
    lines = ["```mermaid", "stateDiagram-v2", f"    [*] --> {states[0]}"]
    for state in states:
        followers = [other for other in type(state) if other in transitions[state]]
        lines += [f"    {state} --> {other}" for other in followers] or [f"    {state} --> [*]"]
    return "\n".join([*lines, "```"])


def _job_states(_: str) -> str:
    return _diagram({state: TRANSITIONS[state] for state in type(next(iter(TRANSITIONS)))})


def _turn_states(_: str) -> str:
    return _diagram({state: RUN_TRANSITIONS[state] for state in type(next(iter(RUN_TRANSITIONS)))})


_REGIONS: Mapping[str, Callable[[str], str]] = {
    "settings": _settings,
    "chat-commands": _chat_commands,
    "cli-commands": _cli_commands,
    "exit-codes": _exit_codes,
    "routes": _routes,
    "status-fields": _status_fields,
    "control-verbs": _control_verbs,
    "scopes": _scopes,
    "job-states": _job_states,
    "turn-states": _turn_states,
}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
