"""Entries of the audit trail on the local disk, while the database is unavailable.

An entry is synchronized to the disk before its action is carried out, and moved to the database once that is available
again, also by the next server of the directory.
"""

import logging
import os
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agent_mux._util.files import PRIVATE_FILE, make_directory
from agent_mux._util.logs import LOGGER
from agent_mux.service.store.audit import AuditRow

FILE = "audit.spool"


class AuditSpool:
    """A file with one entry per line. Its methods block."""

    def __init__(self, directory: Path) -> None:
        """`directory`: the service's own one."""
        self.path = directory / FILE

    def read(self) -> list[AuditRow]:
        """Return the entries of the file. A line that was not written completely is skipped: its action was refused."""
        try:
            lines = self.path.read_bytes().splitlines()
        except FileNotFoundError:
            return []
        rows = []
        for line in filter(None, lines):
            try:
                rows.append(msgspec.json.decode(line, type=AuditRow))
            except (msgspec.DecodeError, UnicodeDecodeError):
                logging.getLogger(LOGGER).warning("%s has an incomplete line", self.path)
        return rows

    def append(self, row: AuditRow) -> None:
        """Write an entry and synchronize the file. Raises `OSError`."""
        make_directory(self.path.parent)
        _append(self.path, [row])

    def replace(self, rows: Sequence[AuditRow]) -> None:
        """Keep only these entries. Raises `OSError`."""
        if not rows:
            self.path.unlink(missing_ok=True)
            return
        beside = self.path.with_name(f"{FILE}.new")
        beside.unlink(missing_ok=True)
        _append(beside, rows)
        beside.replace(self.path)


def _append(path: Path, rows: Sequence[AuditRow]) -> None:
    # Each line begins with the line break, since the line before may be incomplete.
    data = memoryview(b"".join(b"\n" + msgspec.json.encode(row) for row in rows))
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC, PRIVATE_FILE)
    try:
        while data:
            data = data[os.write(descriptor, data) :]
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
