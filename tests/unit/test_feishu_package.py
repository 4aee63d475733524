"""The package's front door: everything named is there, and little is imported before it is used."""

import subprocess
import sys

import agno_lark.feishu


def test_every_public_name_is_there() -> None:
    for name in agno_lark.feishu.__all__:
        assert getattr(agno_lark.feishu, name) is not None
    assert not hasattr(agno_lark.feishu, "no_such_name")


def test_reading_an_event_needs_neither_network_libraries_nor_the_sdk() -> None:
    script = (
        "import sys; from agno_lark.feishu import parse_event, meant_text; "
        "print(sorted({'httpx', 'websockets', 'requests', 'lark_channel', 'lark_oapi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_frame_class_loads_where_warnings_are_errors() -> None:
    script = "from agno_lark.feishu.frames import ping_frame; print(len(ping_frame(33)))"
    done = subprocess.run([sys.executable, "-W", "error", "-c", script], capture_output=True, text=True, check=True)
    assert int(done.stdout) > 10


def test_the_sdk_is_not_imported_before_a_connection_runs_and_lark_oapi_never() -> None:
    script = (
        "import sys; from agno_lark.feishu import Connection, OpenApi; "
        "print(sorted({'requests', 'lark_channel', 'lark_oapi'} & set(sys.modules))); "
        "from agno_lark.feishu.frames import load_frame_class; load_frame_class(); "
        "print(sorted({'lark_channel', 'lark_oapi'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.split("\n")[:2] == ["[]", "['lark_channel']"]
