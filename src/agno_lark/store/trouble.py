"""What can be wrong with the state database: the reason in a word, and what to do about it in a sentence."""

import errno
import os
import resource
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from agno_lark.errors import StoreError

__all__ = ["ADVICE", "PROBE_BYTES", "Reason", "Trouble", "damaged", "explained", "reason_of"]

PROBE_BYTES = 64 * 1024  # with less room than this the disk counts as full


class Reason(StrEnum):
    """Why the database cannot be written. All but `DAMAGED` may pass by themselves."""

    DISK_FULL = "disk_full"  # or its quota, or the process's limit on the size of files
    LOCKED = "locked"  # another program holds it
    READ_ONLY = "read_only"  # the file, its folder or its disk
    DISK_ERROR = "disk_error"  # it is gone, cannot be opened, or fails
    DAMAGED = "damaged"  # what it holds cannot be trusted any more


ADVICE: Mapping[Reason | None, str] = {
    Reason.DISK_FULL: "the disk is full: free some space; a bridge that runs goes on by itself",
    Reason.LOCKED: "another program holds it: close that program (a database browser, a backup)",
    Reason.READ_ONLY: "it cannot be written: check the owner and the rights of the file and its folder, and that its "
    "disk is not mounted read-only",
    Reason.DISK_ERROR: "it cannot be opened, read or written: check that FEISHU_STATE_DB names a file in a folder that "
    "can be written, and the system's log for errors of its disk",
    Reason.DAMAGED: "it is damaged or not a database: put a backup in its place, or move it away "
    "(with its -wal and -shm files) to start anew",
    None: "its cause is in the log",
}


@dataclass(frozen=True, kw_only=True, slots=True)
class Trouble:
    """Nothing can be committed since `since_ms` (UTC epoch ms); `message` says why and what to do."""

    reason: Reason
    since_ms: int
    message: str


def reason_of(path: Path, error: BaseException) -> Reason | None:
    """Which trouble an error tells of; None when it says nothing about the file."""
    if isinstance(error, sqlite3.Error):
        match getattr(error, "sqlite_errorcode", 0) & 0xFF:  # the low byte is the primary code
            case sqlite3.SQLITE_FULL:
                return Reason.DISK_FULL
            case sqlite3.SQLITE_BUSY | sqlite3.SQLITE_PROTOCOL:  # (LOCKED would be a fault of our own)
                return Reason.LOCKED
            case sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
                return Reason.READ_ONLY
            case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
                return Reason.DAMAGED
            case sqlite3.SQLITE_IOERR | sqlite3.SQLITE_CANTOPEN:
                return _looked_at(path)
        return None
    if isinstance(error, OSError):
        if error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EFBIG):
            return Reason.DISK_FULL
        if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
            return Reason.READ_ONLY
        return Reason.DISK_ERROR
    return None


def explained(path: Path, error: BaseException, reason: Reason | None) -> StoreError:
    """The error as the operator reads it; `reason` as `reason_of` found it."""
    failure = _store_error(path, str(error), reason)
    failure.__cause__ = error
    return failure


def damaged(path: Path, what: str) -> StoreError:
    """The error for a file that opens, but in which `what` is wrong."""
    return _store_error(path, what, Reason.DAMAGED)


def _store_error(path: Path, what: str, reason: Reason | None) -> StoreError:
    failure = StoreError(f"state database {path}: {what}; {ADVICE[reason]}")
    failure.retryable = reason is not Reason.DAMAGED
    return failure


def _looked_at(path: Path) -> Reason:
    """SQLite says "disk I/O error" or "unable to open" and keeps the system's reason to itself: look for it."""
    try:
        disk = os.statvfs(path.parent)
        if disk.f_bavail * disk.f_frsize < PROBE_BYTES or (disk.f_files and not disk.f_favail) or _at_its_limit(path):
            return Reason.DISK_FULL
        if not all(os.access(name, os.W_OK, effective_ids=True) for name in (path.parent, path) if name.exists()):
            return Reason.READ_ONLY
    except OSError:
        pass
    return Reason.DISK_ERROR


def _at_its_limit(path: Path) -> bool:
    """The process may not make files as long as these have to become (`ulimit -f`, LimitFSIZE of systemd)."""
    limit = resource.getrlimit(resource.RLIMIT_FSIZE)[0]
    if limit == resource.RLIM_INFINITY:
        return False
    files = (path, path.with_name(path.name + "-wal"))
    return limit - max(file.stat().st_size for file in files if file.exists()) < PROBE_BYTES
