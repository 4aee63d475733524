"""The `agno-lark` command. One file a command; nothing heavy is imported before a command needs it."""

import sys

import click

from agno_lark.cli.jobs import jobs
from agno_lark.errors import AgnoLarkError

__all__ = ["main"]

EXIT_CODES = """\b
Exit codes:
  0  ended as asked
  1  an error nobody foresaw
  2  a setting or an option is wrong
  3  another daemon works on the same state file
  4  the state database cannot be used
  5  Feishu refused the app or the connection
"""


@click.group(invoke_without_command=True, epilog=EXIT_CODES, context_settings={"help_option_names": ["-h", "--help"]})
@click.option("--host", help="Where status and health routes listen [BRIDGE_HOST, 127.0.0.1].")
@click.option("--port", type=click.IntRange(0, 65_535), help="Their port; 0 takes a free one [BRIDGE_PORT, 7788].")
@click.option(
    "--env-file", type=click.Path(dir_okay=False), default=".env", show_default=True, help="File with settings."
)
@click.version_option(package_name="agno-lark", prog_name="agno-lark")
@click.pass_context
def cli(context: click.Context, host: str | None, port: int | None, env_file: str) -> None:
    """The bridge between Feishu/Lark and Agno AgentOS. Without a command it runs as a daemon.

    Settings come from the environment and from a .env file; the README lists them. `agno-lark demo` needs none.
    """
    if context.invoked_subcommand is None:
        from agno_lark.cli.serve import serve

        sys.exit(serve(host=host, port=port, env_file=env_file))


@cli.command()
@click.option("--port", type=click.IntRange(0, 65_535), help="Port of the web page [7799, or a free one].")
def demo(port: int | None) -> None:
    """The whole product with nothing configured: a local Feishu, an offline AgentOS, and the bridge."""
    from agno_lark.cli.demo import run_demo

    sys.exit(run_demo(port=port))


@cli.command()
@click.option("--host", default="127.0.0.1", show_default=True, help="A loopback address.")
@click.option(
    "--port", type=click.IntRange(0, 65_535), default=7799, show_default=True, help="Port; 0 takes a free one."
)
def sandbox(host: str, port: int) -> None:
    """A local Feishu to develop bots on: the platform's API, its long connection, and a web chat."""
    from agno_lark.cli.sandbox import run

    sys.exit(run(host=host, port=port))


@cli.command()
@click.option("--host", help="Host of the daemon [BRIDGE_HOST].")
@click.option("--port", type=click.IntRange(1, 65_535), help="Port of the daemon [BRIDGE_PORT].")
@click.pass_context
def health(context: click.Context, host: str | None, port: int | None) -> None:
    """Ask a running daemon whether it is ready: exit code 0 or 1. For container health checks."""
    from agno_lark.cli.health import check

    assert context.parent is not None  # noqa: S101 - it is a command of a group
    sys.exit(check(host=host, port=port, env_file=context.parent.params["env_file"]))


cli.add_command(jobs)


def main() -> None:
    """Entry point: the errors of our own tree become one clear message and their exit code, never a traceback."""
    try:
        cli.main(prog_name="agno-lark")
    except AgnoLarkError as error:
        click.echo(f"agno-lark: {error}", err=True)
        sys.exit(error.exit_code)
