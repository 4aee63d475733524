"""Settings as people get them wrong on a real machine."""

import http.server
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from agno_lark.cli import serve as serve_module
from agno_lark.cli.health import check
from agno_lark.cli.serving import in_address
from agno_lark.errors import AlreadyRunningError, SettingsError
from agno_lark.settings import Settings, load_settings
from agno_lark.store import InstanceLock

GOOD = {
    "FEISHU_APP_ID": "cli_a",
    "FEISHU_APP_SECRET": "s3cret",
    "AGENTOS_URL": "http://127.0.0.1:7777",
    "AGENTOS_TARGET_ID": "helper",
}


@pytest.mark.parametrize("path", ["~nobody-of-this-name/secret", "a\0b"])
def test_a_secret_file_that_no_system_could_open_is_told(path: str) -> None:
    given = {name: value for name, value in GOOD.items() if name != "FEISHU_APP_SECRET"}
    with pytest.raises(SettingsError, match="FEISHU_APP_SECRET_FILE: expected the path of a readable file"):
        load_settings(env_file=None, environ=given | {"FEISHU_APP_SECRET_FILE": path})


def test_a_secret_in_an_env_file_is_taken_as_it_stands(tmp_path: Path) -> None:
    file = tmp_path / ".env"
    lines = [f"{name}={value}" for name, value in (GOOD | {"FEISHU_APP_SECRET": "a${HOME}b"}).items()]
    file.write_text("\n".join(lines), "utf-8")
    assert load_settings(env_file=file, environ={}).feishu_app_secret.get_secret_value() == "a${HOME}b"


async def test_a_second_daemon_with_the_same_port_is_told_of_the_first_and_not_of_the_port(tmp_path: Path) -> None:
    from agno_lark.cli.serving import listen

    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        settings = load_settings(
            env_file=None,
            environ=GOOD | {"FEISHU_STATE_DB": str(tmp_path / "s"), "BRIDGE_PORT": str(taken.getsockname()[1])},
        )
        with (
            InstanceLock.hold(tmp_path / "s", "http://first"),
            pytest.raises(AlreadyRunningError, match="http://first"),
        ):
            await serve_module._serve(settings)
        with pytest.raises(SettingsError, match="BRIDGE_PORT"):
            await serve_module._serve(settings)


def test_an_empty_host_on_the_command_line_does_not_open_the_bridge_to_the_network(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Settings] = []

    async def served(settings: Settings) -> int:
        seen.append(settings)
        return 0

    for name, value in GOOD.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(serve_module, "_serve", served)
    monkeypatch.setattr("agno_lark.observe.configure_logs", lambda *_: None)
    empty = tmp_path / "empty"
    empty.touch()
    assert serve_module.serve(host="", port=0, env_file=str(empty)) == 0
    assert (seen[0].bridge_host, seen[0].bridge_port) == ("127.0.0.1", 0)


@pytest.fixture
def ready_on_ipv6() -> Iterator[int]:
    class Ready(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            return None

    class Server(http.server.HTTPServer):
        address_family = socket.AF_INET6

    server = Server(("::1", 0), Ready)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield server.server_address[1]
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("host", ["::1", "[::1]", "::"])
def test_health_asks_an_ipv6_daemon(ready_on_ipv6: int, tmp_path: Path, host: str) -> None:
    assert check(host=host, port=ready_on_ipv6, env_file="") == 0


def test_hosts_in_addresses() -> None:
    assert [in_address(host) for host in ("127.0.0.1", "::1", "[::1]")] == ["127.0.0.1", "[::1]", "[::1]"]
