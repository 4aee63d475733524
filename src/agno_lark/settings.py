"""Settings: from the environment and `.env`, typed, with every mistake reported at once.

`load_settings()` is what the daemon calls; an embedding app may also build `Settings(...)`, which reads the environment
for what it is not given, or `Settings.given(...)`, which reads nothing. Each field carries what it is for and, where a
value can be wrong, what is expected and how to mend it; the READMEs' tables and `.env.example` are held to these.
"""

import os
from collections.abc import Mapping
from difflib import get_close_matches
from enum import StrEnum
from ipaddress import ip_address
from pathlib import Path
from typing import Annotated, Any, Self
from urllib.parse import urlsplit

from pydantic import AfterValidator, BeforeValidator, Field, SecretStr, ValidationError, model_validator
from pydantic_core import ErrorDetails
from pydantic_settings import BaseSettings, NoDecode, PydanticBaseSettingsSource, SettingsConfigDict

from agno_lark.errors import SettingsError

__all__ = [
    "GroupSessionMode",
    "Language",
    "LogFormat",
    "Settings",
    "TargetKind",
    "given_dotenv",
    "is_loopback",
    "load_settings",
    "read_dotenv",
]


class TargetKind(StrEnum):
    """What answers on the AgentOS."""

    AGENT = "agent"
    TEAM = "team"
    WORKFLOW = "workflow"


class GroupSessionMode(StrEnum):
    """Who shares a conversation in a group."""

    USER = "user"  # each member has a conversation of their own
    SHARED = "shared"  # all members of the group, or of one topic, share one


class Language(StrEnum):
    """The language of the bridge's own sentences."""

    AUTO = "auto"  # the person's: their client's language, else the one they write in
    ZH = "zh"
    EN = "en"


class LogFormat(StrEnum):
    """How log lines are written to stderr."""

    AUTO = "auto"  # text on a terminal, JSON otherwise
    TEXT = "text"
    JSON = "json"


def _split(value: object) -> object:
    if isinstance(value, str):
        return frozenset(part.strip() for part in value.replace("，", ",").split(",") if part.strip())
    return value


def _ids_starting_with(prefix: str) -> AfterValidator:
    def check(value: frozenset[str]) -> frozenset[str]:
        wrong = sorted(item for item in value if not item.startswith(prefix))
        if wrong:
            raise ValueError(f"{wrong[0]!r} does not start with {prefix}")
        return value

    return AfterValidator(check)


def is_loopback(host: str) -> bool:
    """True for localhost and the loopback addresses, v4 and v6."""
    if host == "localhost":
        return True
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return False


def _web_address(value: str) -> str:
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("it is not an http or https address")
    if parts.query or parts.fragment:
        raise ValueError("an address of a server has no ? or # part")
    if parts.username or parts.password:
        raise ValueError("credentials do not belong into the address")
    _ = parts.port  # raises ValueError where the port is no number
    return value.rstrip("/")


def _no_placeholder(value: str) -> str:
    if "..." in value or "…" in value or any(letter.isspace() for letter in value):
        raise ValueError("that is a placeholder")
    return value


def _lark_address(value: str) -> str:
    value = _web_address(value)
    parts = urlsplit(value)
    if parts.scheme == "http" and not is_loopback(parts.hostname or ""):
        raise ValueError("plain http is for a sandbox on this machine only")
    return value


def _lower(value: object) -> object:
    return value.strip().lower() if isinstance(value, str) else value


def _hint(expected: str, mend: str) -> dict[str, Any]:
    return {"expected": expected, "mend": mend}


_ADDRESS = "an address such as"
_WHOLE = "a whole number from"
_WHO_ANSWERS = ("agentos_url", "agentos_target_id")
Ids = Annotated[frozenset[str], NoDecode, BeforeValidator(_split)]


class Settings(BaseSettings):
    """Every setting of the bridge. A field `feishu_app_id` is read from `FEISHU_APP_ID`, secrets also from `…_FILE`."""

    model_config = SettingsConfigDict(
        env_file=None, env_ignore_empty=True, extra="ignore", frozen=True, case_sensitive=False, validate_default=False
    )

    feishu_app_id: Annotated[str, AfterValidator(_no_placeholder)] = Field(
        min_length=1,
        description="App ID of your Feishu/Lark app.",
        json_schema_extra=_hint("the App ID, cli_…", "copy it from the developer console: Credentials & Basic Info"),
    )
    feishu_app_secret: SecretStr = Field(
        min_length=1,
        description="App Secret of the same app.",
        json_schema_extra=_hint(
            "the App Secret", "copy it from the same page, or put it in a file and set FEISHU_APP_SECRET_FILE"
        ),
    )
    agentos_url: Annotated[str, AfterValidator(_web_address)] = Field(
        default="",
        description="Address of the AgentOS.",
        json_schema_extra=_hint(f"{_ADDRESS} http://127.0.0.1:7777", "set it to where your AgentOS listens"),
    )
    agentos_token: SecretStr = Field(
        default=SecretStr(""), description="Bearer token for the AgentOS (its OS_SECURITY_KEY). Empty: none is sent."
    )
    agentos_target_type: Annotated[TargetKind, BeforeValidator(_lower)] = Field(
        default=TargetKind.AGENT,
        description="What answers: agent, team or workflow.",
        json_schema_extra=_hint("agent, team or workflow", "name what AGENTOS_TARGET_ID is"),
    )
    agentos_target_id: str = Field(
        default="",
        description="Its id on the AgentOS. `AGENTOS_AGENT_ID` is the old name for an agent's.",
        json_schema_extra=_hint(
            "the id of an agent, team or workflow", "open <AGENTOS_URL>/config: it lists the ids it serves"
        ),
    )
    agentos_agent_id: str = Field(default="", description="Old name of AGENTOS_TARGET_ID, for an agent.")
    feishu_state_db: Path = Field(
        default=Path(".data/agno-feishu.sqlite3"),
        description="The state database (SQLite). One daemon a file; keep it on a local disk.",
        json_schema_extra=_hint("a file path", "name a file in a folder the daemon may write to"),
    )
    feishu_allowed_user_ids: Annotated[Ids, _ids_starting_with("ou_")] = Field(
        default=frozenset(),
        description="Comma-separated open ids of who may talk to the bot. Empty: everyone.",
        json_schema_extra=_hint("open ids such as ou_abc,ou_def", "a person without access is told their own open id"),
    )
    feishu_allowed_chat_ids: Annotated[Ids, _ids_starting_with("oc_")] = Field(
        default=frozenset(),
        description="Comma-separated ids of the chats it works in. Empty: all. People listed above may always write to "
        "it directly.",
        json_schema_extra=_hint("chat ids such as oc_abc,oc_def", "the log names the chat id of a refused message"),
    )
    feishu_allow_bots: bool = Field(
        default=False,
        description="Whether messages of other bots are answered.",
        json_schema_extra=_hint("true or false", "leave it out to ignore other bots"),
    )
    feishu_group_session_mode: Annotated[GroupSessionMode, BeforeValidator(_lower)] = Field(
        default=GroupSessionMode.USER,
        description="In groups: a conversation per member (user) or one per group and topic (shared).",
        json_schema_extra=_hint("user or shared", "leave it out for user"),
    )
    feishu_private_interrupt: bool = Field(
        default=False,
        description="In direct chats: a newer message stops the run that is still answering an older one.",
        json_schema_extra=_hint("true or false", "leave it out to let messages wait for each other"),
    )
    feishu_language: Annotated[Language, BeforeValidator(_lower)] = Field(
        default=Language.AUTO,
        description="Language of the bridge's own sentences: zh, en, or auto (the person's).",
        json_schema_extra=_hint("auto, zh or en", "leave it out for auto"),
    )
    lark_api_base_url: Annotated[str, AfterValidator(_lark_address)] = Field(
        default="https://open.feishu.cn",
        description="`https://open.feishu.cn`, `https://open.larksuite.com` for international apps, or a sandbox's "
        "loopback address.",
        json_schema_extra=_hint(
            "https://open.feishu.cn, https://open.larksuite.com or a sandbox's http://127.0.0.1:PORT",
            "use the domain on which your app was created",
        ),
    )
    lark_api_timeout: float = Field(
        default=20.0,
        gt=0,
        le=300,
        description="Seconds one call to Feishu may take.",
        json_schema_extra=_hint("seconds from 1 to 300", "leave it out for 20"),
    )
    lark_data_max_rows: int = Field(
        default=100,
        ge=1,
        le=10_000,
        description="Most rows one read of a sheet or base returns.",
        json_schema_extra=_hint(f"{_WHOLE} 1 to 10000", "leave it out for 100"),
    )
    lark_data_max_cells: int = Field(
        default=2000,
        ge=1,
        le=200_000,
        description="Most cells one read returns.",
        json_schema_extra=_hint(f"{_WHOLE} 1 to 200000", "leave it out for 2000"),
    )
    lark_base_page_size: int = Field(
        default=50,
        ge=1,
        le=500,
        description="Records a page when a base is read.",
        json_schema_extra=_hint(f"{_WHOLE} 1 to 500", "leave it out for 50"),
    )
    bridge_host: str = Field(
        default="127.0.0.1", min_length=1, description="Where the status and health routes listen. Loopback by default."
    )
    bridge_port: int = Field(
        default=7788,
        ge=0,
        le=65_535,
        description="Their port; 0 takes a free one.",
        json_schema_extra=_hint(f"{_WHOLE} 0 to 65535", "leave it out for 7788"),
    )
    bridge_max_turns: int = Field(
        default=200,
        ge=1,
        le=5000,
        description="How many conversations may have a run under way at once; further ones wait.",
        json_schema_extra=_hint(f"{_WHOLE} 1 to 5000", "leave it out for 200"),
    )
    bridge_run_timeout: float = Field(
        default=1800.0,
        gt=0,
        le=86_400,
        description="Seconds after which a run that has said nothing at all is given up and the person is told.",
        json_schema_extra=_hint("seconds from 1 to 86400", "leave it out for 1800"),
    )
    bridge_lost_run_timeout: float = Field(
        default=60.0,
        ge=1,
        le=86_400,
        description="Seconds after which a run is given up that the AgentOS lists as running, but lost when it was "
        "restarted.",
        json_schema_extra=_hint("seconds from 1 to 86400", "leave it out for 60"),
    )
    bridge_drain_timeout: float = Field(
        default=10.0,
        ge=0,
        le=600,
        description="Seconds a stopping daemon waits for turns under way; what is not done by then goes on at the "
        "next start.",
        json_schema_extra=_hint("seconds from 0 to 600", "leave it out for 10"),
    )
    bridge_dedup_hours: int = Field(
        default=24,
        ge=8,
        le=720,
        description="For how many hours an event that was taken is recognised when it comes again. Feishu repeats an "
        "event for about seven hours, so never less than eight.",
        json_schema_extra=_hint(f"{_WHOLE} 8 to 720", "leave it out for 24"),
    )
    bridge_keep_days: int = Field(
        default=7,
        ge=1,
        le=365,
        description="For how many days finished jobs and runs are kept. What is not over stays, and so does what "
        "nobody knows the end of.",
        json_schema_extra=_hint(f"{_WHOLE} 1 to 365", "leave it out for 7"),
    )
    log_level: Annotated[str, BeforeValidator(_lower)] = Field(
        default="info",
        pattern="^(debug|info|warning|error)$",
        description="debug, info, warning or error.",
        json_schema_extra=_hint("debug, info, warning or error", "leave it out for info"),
    )
    log_format: Annotated[LogFormat, BeforeValidator(_lower)] = Field(
        default=LogFormat.AUTO,
        description="text, json, or auto (text on a terminal).",
        json_schema_extra=_hint("auto, text or json", "leave it out for auto"),
    )

    @model_validator(mode="after")
    def _old_alias(self) -> Self:
        if self.agentos_agent_id and not self.agentos_target_id and self.agentos_target_type is TargetKind.AGENT:
            object.__setattr__(self, "agentos_target_id", self.agentos_agent_id)
        return self

    @classmethod
    def given(cls, **values: Any) -> "Settings":
        """Settings from these values and the defaults alone: neither environment nor `.env` is read."""
        return _Given(**values)

    def require_target(self) -> None:
        """Raise `SettingsError` where these settings do not say who answers."""
        if missing := [name for name in _WHO_ANSWERS if not getattr(self, name)]:
            raise SettingsError([_missing(name) for name in missing])

    @property
    def in_sandbox(self) -> bool:
        """Feishu is a stand-in on this machine."""
        return is_loopback(urlsplit(self.lark_api_base_url).hostname or "")

    @property
    def open_to_everyone(self) -> bool:
        """Neither allowlist is set: anyone who can reach the bot is answered."""
        return not self.feishu_allowed_user_ids and not self.feishu_allowed_chat_ids


class _Given(Settings):
    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        return (init_settings,)


SECRETS = tuple(name for name, field in Settings.model_fields.items() if field.annotation is SecretStr)


def load_settings(
    *, env_file: str | Path | None = ".env", environ: Mapping[str, str] | None = None, needs_target: bool = True
) -> Settings:
    """Read all settings; the environment wins over `env_file`, and a plain value over its `…_FILE`.

    `environ` stands in for `os.environ` (tests). `needs_target=False` is for an app that brings its own target object:
    `AGENTOS_URL` and `AGENTOS_TARGET_ID` may then be missing. Raises `SettingsError` with one line for every wrong
    setting; the value of a secret is never repeated.
    """
    given = dict(os.environ if environ is None else environ)
    dotenv = read_dotenv(env_file)
    values, problems = _collect(dotenv, given)
    try:
        settings = Settings.given(**values)
    except ValidationError as error:
        already = {problem.split(":")[0].removesuffix("_FILE") for problem in problems}
        found = [_sentence(detail, values) for detail in error.errors()]
        problems += [line for line in found if line.split(":")[0] not in already]
    if needs_target:
        if values.get("agentos_target_type", "agent").lower() == TargetKind.AGENT:
            values.setdefault("agentos_target_id", values.get("agentos_agent_id", ""))
        missing = [name for name in _WHO_ANSWERS if not values.get(name)]
        problems += [_missing(name) for name in missing]
    if problems:
        hints = [f"Perhaps a name is misspelt: {word}." for word in misspelt(dotenv, given)]
        if env_file is not None and not Path(env_file).is_file():
            hints.insert(0, f"There is no file {env_file} here; .env.example shows what belongs into it.")
        raise SettingsError(sorted(problems), " ".join(hints))
    return settings


def misspelt(dotenv: Mapping[str, str], environ: Mapping[str, str]) -> list[str]:
    """Names that look like a setting's but are none, each with the one it resembles. An allowlist whose name is
    misspelt is no allowlist, so the daemon warns of these."""
    known = [name.upper() for name in Settings.model_fields] + [f"{name.upper()}_FILE" for name in SECRETS]
    ours = sorted({name for name in (*dotenv, *environ) if name.upper().startswith(_PREFIXES)})
    close = {
        name: get_close_matches(name.upper(), known, n=1, cutoff=0.88) for name in ours if name.upper() not in known
    }
    return [f"{name} (is {found[0]} meant?)" for name, found in close.items() if found]


_PREFIXES = ("FEISHU_", "AGENTOS_", "LARK_", "BRIDGE_")


def given_dotenv(env_file: str) -> dict[str, str]:
    """As `read_dotenv`, for a file somebody may have named: one that is not there is an error, but for the usual one.
    An empty name reads none. Raises `SettingsError`."""
    if env_file not in ("", ".env") and not Path(env_file).is_file():
        raise SettingsError([f"--env-file: there is no file {env_file}; an empty name reads none"])
    return read_dotenv(env_file or None)


def read_dotenv(env_file: str | Path | None) -> dict[str, str]:
    """What the file says, as it stands; nothing when there is no such file. Raises `SettingsError`."""
    from dotenv import dotenv_values

    if env_file is None or not Path(env_file).is_file():
        return {}
    try:
        found = dotenv_values(env_file, encoding="utf-8-sig", interpolate=False)  # a secret may hold `${`
        return {key: value for key, value in found.items() if value is not None}
    except (OSError, UnicodeDecodeError) as error:
        raise SettingsError([f"{env_file}: it cannot be read ({error}); save it as UTF-8 text"]) from error


def _collect(dotenv: dict[str, str], environ: dict[str, str]) -> tuple[dict[str, str], list[str]]:
    """Values by field name, secrets read from their files, and what was wrong with those files."""
    problems: list[str] = []
    values: dict[str, str] = {}
    sources = [{key.lower(): value.strip() for key, value in source.items()} for source in (environ, dotenv)]
    for name in Settings.model_fields:
        for source in sources:  # the environment first, with its files, then the .env file with its own
            if text := source.get(name):
                values[name] = text
                break
            if name in SECRETS and (file := source.get(f"{name}_file")):
                values[name], problem = _read_secret(file)
                problems += [f"{name.upper()}_FILE: {problem}"] if problem else []
                break
    return values, problems


def _read_secret(file: str) -> tuple[str, str]:
    """What a secret's file holds, and what is wrong with it."""
    expected = f"expected the path of a readable file, but {file}"
    try:
        text = Path(file).expanduser().read_text("utf-8-sig").strip()
    except UnicodeDecodeError:
        return "", f"{expected}: it is not UTF-8 text"
    except (OSError, ValueError, RuntimeError) as error:  # the last: `~` of nobody this machine knows
        return "", f"{expected}: {getattr(error, 'strerror', None) or error}"
    return text, "" if text else f"{expected}: it is empty"


def _hints(name: str) -> tuple[str, str]:
    extra = Settings.model_fields[name].json_schema_extra
    hint = extra if isinstance(extra, dict) else {}
    return str(hint.get("expected", "a value")), str(hint.get("mend", "see the README's settings table"))


def _missing(name: str) -> str:
    expected, mend = _hints(name)
    return f"{name.upper()}: missing; expected {expected}; {mend}"


def _sentence(detail: ErrorDetails, values: Mapping[str, str]) -> str:
    name = str(detail["loc"][0]) if detail["loc"] else "settings"
    if detail["type"] == "missing" or not values.get(name):
        return _missing(name)
    expected, mend = _hints(name)
    given = values[name]
    shape = f"{len(given)} characters" if name in SECRETS else repr(given if len(given) <= 60 else given[:57] + "…")
    context = detail.get("ctx") or {}
    why = f" ({context['error']})" if "error" in context else ""
    return f"{name.upper()}: expected {expected}, got {shape}{why}; {mend}"
