"""`python -m tests.fork_server`: has the daemon's imports done, and forks a real `agno-lark` process for each order.

A daemon's start costs 2 s of processor time, nearly all of it imports; a matrix of two hundred lives cannot pay that.
What is forked runs `agno_lark.cli.main` as the command does, in a process, an environment and a folder of its own.

Orders come as JSON lines on stdin: `{"order", "args", "env", "cwd", "log"}`. Told on stdout, as JSON lines:
`{"ready"}` first, then `{"order", "pid"}` when it is started and `{"order", "exit"}` when it has ended (negative: the
signal that killed it). Ends, and kills what still lives, when stdin is closed.
"""

import gc
import importlib
import json
import os
import select
import signal
import sys
import threading
from typing import Any

from agno_lark.feishu.frames import load_frame_class

DAEMON = (
    "agno_lark.app",
    "agno_lark.cli.serve",
    "agno_lark.cli.serving",
    "agno_lark.observe",
    "aiosqlite",
    "concurrent.futures.thread",
    "pydantic.v1",
    "rich.traceback",
    "structlog.dev",
    "uvicorn.lifespan.off",
    "uvicorn.loops.auto",
    "uvicorn.protocols.http.auto",
)


def main() -> None:
    """Serve orders until stdin ends. A child returns from here as the daemon, and ends as any process does."""
    for name in DAEMON:
        importlib.import_module(name)
    sdk = threading.Thread(target=load_frame_class)  # not in this one: it takes hold of the thread's event loop
    sdk.start()
    sdk.join()
    gc.freeze()  # what is shared stays shared: the children's collectors leave it alone
    woken, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    orders: dict[int, int] = {}
    _tell({"ready": os.getpid()})
    unread = b""
    while True:
        ready, _, _ = select.select([0, woken], [], [])
        if woken in ready:
            os.read(woken, 4096)
            _tell_ends(orders)
        if 0 in ready:
            if not (given := os.read(0, 1 << 20)):
                break
            *lines, unread = (unread + given).split(b"\n")
            for line in lines:
                order = json.loads(line)
                assert threading.active_count() == 1, "only a process without threads may fork"
                if not (pid := os.fork()):
                    os.close(woken)
                    os.close(wake)
                    _become(order)
                    return
                orders[pid] = order["order"]
                _tell({"order": order["order"], "pid": pid})
    for pid in orders:
        os.kill(pid, signal.SIGKILL)


def _tell(what: dict[str, Any]) -> None:
    os.write(1, json.dumps(what).encode() + b"\n")


def _tell_ends(orders: dict[int, int]) -> None:
    for pid in list(orders):
        ended, status = os.waitpid(pid, os.WNOHANG)
        if ended:
            _tell({"order": orders.pop(pid), "exit": os.waitstatus_to_exitcode(status)})


def _become(order: dict[str, Any]) -> None:
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    log = os.open(order["log"], os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for given, number in ((nothing, 0), (log, 1), (log, 2)):
        os.dup2(given, number)
    for spare in (log, nothing):
        os.close(spare)
    os.environ.clear()
    os.environ.update(order["env"])
    os.chdir(order["cwd"])
    sys.argv[:] = ["agno-lark", *order["args"]]
    from agno_lark.cli import main as daemon

    daemon()


if __name__ == "__main__":
    main()
