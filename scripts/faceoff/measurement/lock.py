"""Locks that end with the process that holds them: one measurement a machine, one job a cell."""

import fcntl
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

# Not under TMPDIR: every user and job of the machine must find the same file.
MACHINE_LOCK = Path("/tmp/faceoff-measurement.lock")  # noqa: S108 - opened without following links


@contextmanager
def exclusive(path: Path, waiting_for: str) -> Iterator[None]:
    """Hold the lock at `path`, after waiting for it as long as it takes; say so when there is a wait."""
    descriptor = _open(path)
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print(f"waiting for {waiting_for} ({path})", file=sys.stderr, flush=True)
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _open(path: Path) -> int:
    try:
        # Without O_CREAT first: in a sticky directory the kernel refuses O_CREAT on another user's file.
        return os.open(path, os.O_RDWR | os.O_NOFOLLOW)
    except FileNotFoundError:
        mask = os.umask(0)
        try:
            return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o666)
        finally:
            os.umask(mask)
