"""One daemon a state file: an advisory lock beside it that names its holder."""

import contextlib
import fcntl
import json
import os
import socket
import uuid
from collections.abc import Iterator
from pathlib import Path

from agno_lark.errors import AlreadyRunningError, StoreError

__all__ = ["InstanceLock"]


class InstanceLock:
    """`with InstanceLock.hold(path, address) as instance_id:` — the kernel frees it when the process ends, however."""

    @staticmethod
    @contextlib.contextmanager
    def hold(state_db: Path, address: str) -> Iterator[str]:
        """Hold `<state_db>.lock`; yields this instance's id, which is the same over restarts on this state file, so
        that a new life knows the leases of its former one. `address` is told to whoever comes second.

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
            instance_id = _holder(os.read(handle, 4096)).get("instance") or str(uuid.uuid4())
            holder = {"pid": os.getpid(), "host": socket.gethostname(), "address": address, "instance": instance_id}
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps(holder).encode(), 0)
            yield instance_id
        finally:
            os.close(handle)


def _holder(raw: bytes) -> dict[str, str]:
    try:
        read = json.loads(raw)
    except ValueError:
        return {}
    return {str(key): str(value) for key, value in read.items()} if isinstance(read, dict) else {}


def _refusal(state_db: Path, raw: bytes) -> str:
    holder = _holder(raw)
    who = "another process"
    if holder:
        who = f"process {holder.get('pid')} on {holder.get('host')}, listening on {holder.get('address')}"
    return (
        f"another agno-lark daemon works on {state_db}: {who}. Stop it first, or give this one a state file of its own "
        "(FEISHU_STATE_DB). Two daemons for one app would each get a part of its events."
    )
