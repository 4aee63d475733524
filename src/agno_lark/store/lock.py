"""One daemon a state file: an advisory lock beside it that names its holder."""

import contextlib
import fcntl
import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path

from agno_lark.errors import AlreadyRunningError, StoreError

__all__ = ["InstanceLock"]


class InstanceLock:
    """`with InstanceLock.hold(path, instance_id, address):` — the kernel frees it when the process ends, however."""

    @staticmethod
    @contextlib.contextmanager
    def hold(state_db: Path, instance_id: str, address: str) -> Iterator[None]:
        """Hold `<state_db>.lock`. `address` is where this daemon can be reached, told to whoever comes second.

        Raises `AlreadyRunningError` naming the holder, and `StoreError` when the file cannot be made.
        """
        path = state_db.expanduser().with_name(state_db.name + ".lock")
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
        except OSError as error:
            raise StoreError(
                f"lock file {path}: {error.strerror}; check the owner and the rights of its folder"
            ) from error
        try:
            try:
                fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError as error:
                raise AlreadyRunningError(_refusal(state_db, os.read(handle, 4096))) from error
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "address": address, "instance": instance_id}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
            yield
        finally:
            os.close(handle)


def _refusal(state_db: Path, raw: bytes) -> str:
    try:
        holder = json.loads(raw)
        who = f"process {holder['pid']} on {holder['host']}, listening on {holder['address']}"
    except (ValueError, KeyError, TypeError):
        who = "another process"
    return (
        f"another agno-lark daemon works on {state_db}: {who}. Stop it first, or give this one a state file of its own "
        "(FEISHU_STATE_DB). Two daemons for one app would each get a part of its events."
    )
