"""The records of a run of the scripted agent, without a process."""

import json
from collections.abc import Iterable
from typing import Any

from tests.process.scripted import ScriptedCodec

from agent_mux.assembler import StreamContext
from agent_mux.events import AgentEvent
from agent_mux.journal.records import Control, Exited, Header, Kind, Record, encode
from agent_mux.run.normalizer import Normalizer
from agent_mux.sdk.codec import CodecContext

RUN_ID = "0" * 26
STARTED_AT = 1_700_000_000_000
DONE = Record(Kind.EXIT, 9_000_000, encode(Exited(code=0)))


def header(**stream: Any) -> Header:
    return Header(
        package_version="0",
        started_at=STARTED_AT,
        codec=CodecContext(
            agent="scripted", protocol="lines", prompt=stream.pop("prompt", "hi"), debug=stream.pop("debug", False)
        ),
        stream=StreamContext(run_id=RUN_ID, agent="scripted", **stream),
    )


def normalizer(**stream: Any) -> Normalizer:
    head = header(**stream)
    return Normalizer(head, ScriptedCodec)


def line(**native: Any) -> bytes:
    return json.dumps(native).encode() + b"\n"


def printed(*lines: bytes, at: int = 0) -> list[Record]:
    return [Record(Kind.STDOUT, at + 1000 * index, data) for index, data in enumerate(lines)]


def control(what: Any, message: str = "", at: int = 0) -> Record:
    return Record(Kind.CONTROL, at, encode(Control(what, message)))


def feed(one: Normalizer, records: Iterable[Record]) -> list[AgentEvent]:
    return [event for record in records for event in one.feed(record)]


def types(events: Iterable[AgentEvent]) -> list[str]:
    return [event.type for event in events]
