"""The whole text of a run, for `amux runs text`."""

import codecs
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from agent_mux.cli.command_output import Invocation, print_json
from agent_mux.cli.run_selection import find_local, remote_id
from agent_mux.cli.terminal import sanitize

if TYPE_CHECKING:
    from agent_mux.client.remote.run_queries import RemoteRuns

PART = 8 << 20
"""Bytes that are requested from a service at once."""


def print_text(invocation: Invocation, run: str | None, offset: int, limit: int | None, config_dir: Path | None) -> int:
    """Print the wanted bytes of the text: unchanged into a file or a pipe, sanitized on a terminal, or as JSON."""
    chunks = _chunks(invocation, run, offset, limit, config_dir)
    if invocation.json:
        content = b"".join(chunks)
        print_json({"offset": offset, "bytes": len(content), "text": content.decode("utf-8", "replace")})
        return 0
    if not sys.stdout.isatty():
        for chunk in chunks:
            sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
        return 0
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for chunk in chunks:
        sys.stdout.write(sanitize(decoder.decode(chunk)))
    sys.stdout.write(decoder.decode(b"", final=True) + "\n")
    return 0


def _chunks(
    invocation: Invocation, run: str | None, offset: int, limit: int | None, config_dir: Path | None
) -> Iterator[bytes]:
    service = invocation.service
    if service is None:
        known, record = find_local(run, config_dir, outcome=False)
        return known.text(record).chunks(offset, limit)
    return _parts(service.client().runs, remote_id(service, run), offset, limit)


def _parts(runs: "RemoteRuns", run_id: str, offset: int, limit: int | None) -> Iterator[bytes]:
    end = None if limit is None else offset + limit
    while end is None or offset < end:
        part = runs.read_text(run_id, offset=offset, limit=PART if end is None else min(PART, end - offset))
        if not part:
            return
        yield part
        offset += len(part)
