"""One daemon a state file: an advisory lock beside it that names its holder."""

import contextlib
import fcntl
import json
import os
import socket
import tempfile
import uuid
from collections.abc import Iterator
from hashlib import sha256
from pathlib import Path

from agno_lark.errors import AlreadyRunningError, StoreError
from agno_lark.store.trouble import ADVICE, reason_of

__all__ = ["InstanceLock", "holder_of", "other_of_app", "whole_path"]


def whole_path(state_db: Path) -> Path:
    """The file a setting names: absolute, links followed, `~` filled in. Raises `StoreError` for what names no file."""
    try:
        path = state_db.expanduser().resolve()
        if path.is_dir():
            raise IsADirectoryError("it is a folder")
    except (OSError, RuntimeError, ValueError) as error:
        raise StoreError(f"state database {state_db}: {error}; name a file in FEISHU_STATE_DB") from error
    return path


class InstanceLock:
    """`with InstanceLock.hold(path, address) as instance_id:` — the kernel frees it when the process ends, however."""

    @staticmethod
    @contextlib.contextmanager
    def hold(state_db: Path, address: str) -> Iterator[str]:
        """Hold `<state_db>.lock`; yields this instance's id, which is the same over restarts on this state file, so
        that a new life knows the leases of its former one. `address` is told to whoever comes second.

        Raises `AlreadyRunningError` naming the holder, and `StoreError` when the file cannot be made or locked.
        """
        file = whole_path(state_db)  # by whatever link it was named: one file, one lock
        path = file.with_name(file.name + ".lock")
        with contextlib.ExitStack() as stack:
            try:
                path.parent.mkdir(parents=True, exist_ok=True)
                handle = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
                stack.callback(os.close, handle)
                instance_id = _take(handle, state_db, address)
            except OSError as error:
                raise StoreError(f"lock file {path}: {error.strerror}; {ADVICE[reason_of(file, error)]}") from error
            yield instance_id


def holder_of(state_db: Path) -> str:
    """Words on the daemon that works on this state file, or "" where none does (or it cannot be told)."""
    path = state_db.expanduser()
    try:
        handle = os.open(path.with_name(path.name + ".lock"), os.O_RDWR)
    except OSError:
        return ""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        holder = _holder(os.read(handle, 4096))
        return f"process {holder.get('pid', '?')}, listening on {holder.get('address', '?')}"
    except OSError:
        return ""
    finally:
        os.close(handle)
    return ""


@contextlib.contextmanager
def other_of_app(app: str, address: str) -> Iterator[str]:
    """Be known on this machine as the bridge of `app` (its id and Feishu's address); yields words on another one that
    is, on another state file, or "" where none is known. One on another machine no lock can tell of, so this one never
    refuses anything, nor raises.
    """
    name = f"agno-lark-{sha256(app.encode()).hexdigest()[:16]}.lock"
    with contextlib.ExitStack() as stack:
        words = ""
        try:
            flags = os.O_CREAT | os.O_RDWR | os.O_NOFOLLOW
            handle = os.open(Path(tempfile.gettempdir(), name), flags, 0o600)
            stack.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.ftruncate(handle, 0)
            os.pwrite(handle, json.dumps({"pid": os.getpid(), "address": address}).encode(), 0)
        except BlockingIOError:
            holder = _holder(os.read(handle, 4096))
            words = f"process {holder.get('pid', '?')}, listening on {holder.get('address', '?')}"
        except OSError:  # no such folder, another person's file: then nothing is known
            pass
        yield words


def _take(handle: int, state_db: Path, address: str) -> str:
    """The instance id, once the lock is ours and the file says so. Raises `AlreadyRunningError`, `OSError`."""
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise AlreadyRunningError(_refusal(state_db, os.read(handle, 4096))) from error
    instance_id = _holder(os.read(handle, 4096)).get("instance") or str(uuid.uuid4())
    holder = {"pid": os.getpid(), "host": socket.gethostname(), "address": address, "instance": instance_id}
    raw = json.dumps(holder).encode()
    os.pwrite(handle, raw, 0)  # before it is cut to length: a full disk must not cost the instance its id
    os.ftruncate(handle, len(raw))
    return instance_id


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
