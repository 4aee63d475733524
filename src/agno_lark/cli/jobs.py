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
AS_JSON = click.option("--json", "as_json", is_flag=True, help="For programs.")


@click.group()
@click.option("--db", type=click.Path(dir_okay=False), help="The state file [FEISHU_STATE_DB].")
@click.pass_context
def jobs(context: click.Context, db: str | None) -> None:
    """Look at jobs, ask again, take back. ID is a message's, a job's or a run's (six characters or more)."""
    from agno_lark.settings import Settings, read_dotenv

    assert context.parent is not None  # noqa: S101 - it is a command of a group
    given = {**read_dotenv(context.parent.params["env_file"] or None), **os.environ}
    default = Settings.model_fields["feishu_state_db"].default
    context.obj = Path(db or given.get("FEISHU_STATE_DB") or default)


@jobs.command(name="list")
@click.option("--state", type=click.Choice(STATES), help="Only those in this state.")
@click.option("--lane", default="", help="Only those of this conversation (its session id).")
@click.option("--kind", default="", help="Only turn, command, say, stop_run or reply.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=50, show_default=True, help="At most so many.")
@AS_JSON
@click.pass_obj
def list_(db: Path, state: str | None, lane: str, kind: str, limit: int, as_json: bool) -> None:
    """The newest jobs."""
    from agno_lark.operate import list_jobs
    from agno_lark.store import read_once

    found = read_once(db, _now_ms(), list_jobs, state=state or "", lane=lane, kind=kind, most=limit)
    if as_json:
        click.echo(json.dumps([asdict(line) for line in found], indent=2))
        return
    for line in found:
        error = f"  {line.error}" if line.error else ""
        click.echo(f"{_time(line.created_ms)}  {line.state:9}  {line.kind:8}  {line.id}{error}")
    if not found:
        click.echo("no jobs", err=True)


@jobs.command()
@click.argument("id_", metavar="ID")
@AS_JSON
@click.pass_context
def show(context: click.Context, id_: str, as_json: bool) -> None:
    """Where is this message? Exit code 1 when nothing is known of it."""
    from agno_lark.operate import whereabouts
    from agno_lark.store import read_once

    found = read_once(context.obj, _now_ms(), whereabouts, id_)
    if as_json:
        click.echo(json.dumps(asdict(found) if found else None, indent=2))
    elif found is None:
        click.echo(f"no message, job or run {id_!r} is known (any more)", err=True)
    else:
        click.echo("\n".join(_told(asdict(found))))
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
    from agno_lark.store import write_once

    told = write_once(context.obj, _now_ms(), decide, id_, str(uuid4()))
    done = told.startswith("done")
    if as_json:
        click.echo(json.dumps({"done": done, "told": told}))
    else:
        click.echo(told, err=not done)
    context.exit(0 if done else 1)


def _told(facts: dict[str, Any]) -> list[str]:
    job = facts["job"]
    lines = [f"{facts['where']}: {facts['why']}"]
    names = ("message_id", "run_id", "run_state", "answer", "retry_of")
    lines += [f"{name.replace('_', ' '):12} {facts[name]}" for name in names if facts[name]]
    lines.append(f"{'job':12} {job['id']} ({job['kind']}, {job['state']}, attempt {job['attempts']})")
    lines.append(f"{'conversation':12} {job['lane']}")
    times = ("accepted_ms", "submitted_ms", "finished_ms", "replied_ms")
    return lines + [f"{name.removesuffix('_ms'):12} {_time(facts[name])}" for name in times if facts[name]]


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%SZ")


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
