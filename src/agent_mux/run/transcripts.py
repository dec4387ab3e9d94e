"""Normalizing the recorded output of an agent without running it: `amux parse`, fixtures, bug reports.

The input is the agent's standard output alone, or a two-way transcript: one JSON object per line that wraps each native
line, `{"t": 1.25, "dir": "->", "msg": {...}}`. `t` is in seconds; `->` is input of the agent, `<-` its output and `<!`
its standard error; `msg` is the native line, parsed or as a string.
"""

import time
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec

from agent_mux._util.ulids import new_ulid
from agent_mux._util.version import __version__
from agent_mux.assembler import StreamContext
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Exited, Header, Kind, Record, encode
from agent_mux.run.normalizer import Normalizer
from agent_mux.sdk.adapter import Adapter, NativeProtocol
from agent_mux.sdk.codec import CodecContext, Source
from agent_mux.sdk.framing import Framing, frame_message, from_recorded_line, split_lines
from agent_mux.sdk.models import prices_of
from agent_mux.sdk.native_json import load_object

SNIFFED_LINES = 50  # lines to check before giving up on the detection of the protocol
MAX_SECONDS = 10 * 365 * 86_400  # a later time of a line is noise
_KIND = {Source.STDIN: Kind.STDIN, Source.STDOUT: Kind.STDOUT, Source.STDERR: Kind.STDERR}
_DIRECTIONS = {"->": Source.STDIN, "<-": Source.STDOUT, "<!": Source.STDERR}


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A recorded conversation with an agent: for each line its stream, its bytes and its time in microseconds."""

    lines: tuple[tuple[Source, bytes, int], ...]
    exited: Exited = Exited()


def read_transcript(data: bytes) -> Transcript:
    """Return the lines of either form. Never raises: data of neither form is treated as standard output."""
    lines = [line for line in split_lines([data]) if line and not line.isspace()]
    wrapped = [_unwrap(line) for line in lines]
    if lines and all(item is not None for item in wrapped):
        return Transcript(lines=tuple(item for item in wrapped if item is not None))
    return Transcript(lines=tuple((Source.STDOUT, line, 0) for line in lines))


def _unwrap(line: bytes) -> tuple[Source, bytes, int] | None:
    value = load_object(line)
    source = _DIRECTIONS.get(str(value.get("dir"))) if value is not None else None
    if value is None or source is None or "msg" not in value:
        return None
    inner, at = value["msg"], value.get("t")
    raw = inner.encode("utf-8", "surrogatepass") if isinstance(inner, str) else msgspec.json.encode(inner)
    return source, raw, int(at * 1_000_000) if isinstance(at, int | float) and 0 <= at <= MAX_SECONDS else 0


def detect_protocol(adapter: Adapter, transcript: Transcript) -> NativeProtocol:
    """Return the agent's protocol in which a transcript is written.

    Raises PARSE_ERROR if the transcript has lines but no protocol matches, and for an agent without protocols of its
    own.
    """
    if not adapter.protocols:
        raise AgentMuxError(
            "PARSE_ERROR", f"{adapter.display_name} has no protocol of its own; name the agent that was recorded"
        )
    for source, line, _ in transcript.lines[:SNIFFED_LINES]:
        native = load_object(line) if source is Source.STDOUT else None
        if native is None:
            continue
        for protocol in adapter.protocols.values():
            if protocol.sniff(native):
                return protocol
    if not transcript.lines:
        return next(iter(adapter.protocols.values()))  # the agent printed nothing: any protocol gives the same result
    known = ", ".join(sorted(adapter.protocols))
    raise AgentMuxError(
        "PARSE_ERROR",
        f"no line of this transcript is in a protocol of {adapter.display_name} ({known}); is it another agent's?",
    )


def parse_transcript(
    adapter: Adapter,
    transcript: Transcript,
    *,
    protocol: NativeProtocol | None = None,
    run_id: str | None = None,
    started_at: int | None = None,
    **stream: Any,
) -> Iterator[AgentEvent]:
    """Yield the events of a transcript.

    `started_at` is in milliseconds since the epoch; `stream` has further fields of `StreamContext`.
    """
    protocol = protocol or detect_protocol(adapter, transcript)
    normalizer = observing_normalizer(adapter, protocol, run_id=run_id, started_at=started_at, **stream)
    for record in records_of(transcript, protocol.framing):
        yield from normalizer.feed(record)


def observing_normalizer(
    adapter: Adapter,
    protocol: NativeProtocol,
    *,
    run_id: str | None = None,
    started_at: int | None = None,
    **stream: Any,
) -> Normalizer:
    """Return a normalizer for a conversation that another client had with the agent."""
    header = observing_header(adapter, protocol, run_id=run_id, started_at=started_at, **stream)
    return Normalizer(header, protocol.codec)


def observing_header(
    adapter: Adapter,
    protocol: NativeProtocol,
    *,
    run_id: str | None = None,
    started_at: int | None = None,
    **stream: Any,
) -> Header:
    """Return the header for a conversation that another client had with the agent."""
    return Header(
        package_version=__version__,
        started_at=started_at if started_at is not None else time.time_ns() // 1_000_000,
        observing=True,
        framing=protocol.framing,
        codec=CodecContext(agent=adapter.agent, protocol=protocol.name, cwd=stream.get("cwd", "")),
        stream=StreamContext(
            run_id=run_id or new_ulid(),
            agent=adapter.agent,
            display_name=adapter.display_name,
            streams=protocol.streams,
            permission_pending=True,
            model=adapter.default_model,
            prices=prices_of(adapter.models()),
            auth_guidance=adapter.auth_guidance,
            **stream,
        ),
    )


def records_of(transcript: Transcript, framing: Framing = "lines") -> Iterable[Record]:
    """Yield the transcript as the records of a run. Without times, all input of the agent comes first."""
    for source, line, at in transcript.lines:
        own = "lines" if source is Source.STDERR else framing
        yield Record(_KIND[source], at, frame_message(own, from_recorded_line(own, line)))
    yield Record(Kind.EXIT, max((at for *_, at in transcript.lines), default=0), encode(transcript.exited))
