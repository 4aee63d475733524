"""`agno-lark jobs`: an operator looks into the state file, and decides; the daemon may be running or not."""

import json
import os
import time
from collections.abc import Callable
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any
from uuid import uuid4

import click

__all__ = ["jobs"]

STATES = ("queued", "running", "done", "failed", "cancelled", "unknown")
KINDS = ("turn", "command", "say", "stop_run", "reply")
HINTS = {
    "unknown": "agno-lark jobs retry ID asks again, jobs cancel ID leaves it",
    "asking": "agno-lark jobs retry ID answers it, jobs cancel ID leaves it",
    "failed": "agno-lark jobs retry ID asks again, or sends again what could not be shown",
}
AS_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.group()
@click.option("--db", type=click.Path(dir_okay=False), help="The state file [FEISHU_STATE_DB].")
@click.pass_context
def jobs(context: click.Context, db: str | None) -> None:
    """Look at jobs, ask again, take back. ID is a message's, or a job's or a run's (six characters or more of it)."""
    from agno_lark.settings import Settings, given_dotenv

    assert context.parent is not None  # noqa: S101 - it is a command of a group
    given = {**given_dotenv(context.parent.params["env_file"]), **os.environ}
    default = Settings.model_fields["feishu_state_db"].default
    context.obj = Path(db or given.get("FEISHU_STATE_DB") or default)


@jobs.command(name="list")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--lane", default="", help="Only those of this conversation (its session id).")
@click.option("--kind", type=click.Choice(KINDS), help="Only those of this kind.")
@click.option("--open", "only_open", is_flag=True, help="Only those somebody should decide about.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many.")
@AS_JSON
@click.pass_obj
def list_(db: Path, state: str | None, lane: str, kind: str | None, only_open: bool, limit: int, as_json: bool) -> None:
    """The newest jobs: when accepted, state, kind, id, the message and the run, and the error."""
    from agno_lark.operate import list_jobs
    from agno_lark.store import read_once

    found = read_once(
        db, _now_ms(), list_jobs, state=state or "", lane=lane, kind=kind or "", only_open=only_open, most=limit
    )
    if as_json:
        click.echo(json.dumps([asdict(line) for line in found], indent=2))
        return
    for line in found:
        facts = [line.message_id, f"run {line.run_id[:8]}" if line.run_id else None, line.error]
        told = "".join(f"  {fact}" for fact in facts if fact)
        click.echo(f"{_time(line.created_ms)}  {line.state:9}  {line.kind:8}  {line.id}{told}")
    if not found:
        click.echo("no jobs", err=True)


@jobs.command()
@click.argument("id_", metavar="ID")
@AS_JSON
@click.pass_context
def show(context: click.Context, id_: str, as_json: bool) -> None:
    """Where is this message? Exit code 1 when nothing is known of it."""
    from agno_lark.operate import whereabouts
    from agno_lark.store import holder_of, read_once

    found = read_once(context.obj, _now_ms(), whereabouts, id_)
    daemon = bool(holder_of(context.obj))
    if as_json:
        click.echo(json.dumps(asdict(found) | {"daemon": daemon} if found else None, indent=2))
    elif found is None:
        click.echo(f"no message, job or run {id_!r} is known: it was not accepted (yet), or is forgotten", err=True)
    else:
        click.echo("\n".join(_told(asdict(found))))
        if not daemon:
            click.echo("no daemon is running on this state file")
    context.exit(0 if found else 1)


@jobs.command()
@click.argument("id_", metavar="ID")
@AS_JSON
@click.pass_context
def retry(context: click.Context, id_: str, as_json: bool) -> None:
    """Ask again what failed, is unknown or came too late; send an answer once more that could not be shown."""
    from agno_lark.operate import retry_job

    _decide(context, retry_job, id_, as_json=as_json)


@jobs.command()
@click.argument("id_", metavar="ID")
@AS_JSON
@click.pass_context
def cancel(context: click.Context, id_: str, as_json: bool) -> None:
    """Take back what waits, stop what runs, leave what is unknown as it is."""
    from agno_lark.operate import cancel_job

    _decide(context, cancel_job, id_, as_json=as_json)


def _decide(context: click.Context, decide: Callable[..., str], id_: str, *, as_json: bool) -> None:
    """Exit code 1 when nothing was done."""
    from agno_lark.store import holder_of, write_once

    told = write_once(context.obj, _now_ms(), decide, id_, str(uuid4()))
    done, daemon = told.startswith("done"), bool(holder_of(context.obj))
    if as_json:
        click.echo(json.dumps({"done": done, "told": told, "daemon": daemon}))
    else:
        click.echo(told, err=not done)
        if done and not daemon:
            click.echo("no daemon is running on this state file: the rest follows when one is started")
    context.exit(0 if done else 1)


def _told(facts: dict[str, Any]) -> list[str]:
    job = facts["job"]
    lines = [f"{facts['where']}: {facts['why']}"]
    if hint := HINTS.get(facts["where"]):
        lines.append(f"  {hint.replace('ID', job['id'])}")
    names = ("message_id", "run_id", "run_state", "answer", "retry_of", "asked_again_as")
    lines += [f"{name.replace('_', ' '):14} {facts[name]}" for name in names if facts[name]]
    lines += [f"{'reply':14} {reply['id']} ({reply['state']})" for reply in facts["replies"]]
    lines.append(f"{'job':14} {job['id']} ({job['kind']}, {job['state']}, attempt {job['attempts']})")
    lines.append(f"{'conversation':14} {job['lane']}")
    times = ("accepted_ms", "submitted_ms", "finished_ms", "replied_ms")
    return lines + [f"{name.removesuffix('_ms'):14} {_time(facts[name])}" for name in times if facts[name]]


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
