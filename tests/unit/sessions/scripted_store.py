"""A session store whose files contain facts as JSON lines, for tests that do not depend on an agent."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
from tests.process.scripted import scripted_adapter

from agent_mux.events.base import CostRecord  # noqa: F401  # for the names of facts
from agent_mux.sdk import facts
from agent_mux.sdk.config import AgentPaths
from agent_mux.sdk.models import ModelCapabilities, Price
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.sdk.session_files import JsonLinesReader, find_session_files
from agent_mux.sdk.sessions import (
    FoundSession,
    ModelCalled,
    PromptSent,
    SessionCost,
    SessionDescribed,
    SessionEntry,
    SessionFact,
    SessionStore,
    UnknownRow,
    UnreadableSessionError,
)
from agent_mux.sessions.client import Sessions

START = 1_700_000_000_000  # milliseconds since the epoch: 2023-11-14
DAY = 86_400_000
MODELS = (
    ModelCapabilities(model_id="big", provider="nobody", price=Price(10.0, 20.0)),
    ModelCapabilities(model_id="small", provider="nobody", price=Price(1.0, 2.0)),
)


def _read(row: dict[str, Any]) -> Iterable[SessionEntry]:
    fields: Mapping[str, Any] = row
    match fields:
        case {"foreign": why}:
            raise UnreadableSessionError(str(why))
        case {"session": name}:
            fact: SessionFact = SessionDescribed(session_id=name, cwd=fields.get("cwd"), title=fields.get("title"))
        case {"prompt": text}:
            fact = PromptSent(text, fields.get("id", ""))
        case {"text": text}:
            fact = facts.WholeText(text)
        case {"tool": name, "input": given}:
            fact = facts.ToolReady(name, name, given)
        case {"result": name, "output": output}:
            fact = facts.ToolDone(name, output=output)
        case {"call": key, "model": model, "tokens": [into, out]}:
            fact = ModelCalled(key, model, facts.Usage(into, out), fields.get("usd"))
        case {"spent": usd}:
            fact = SessionCost(usd)
        case {"unknown": kind}:
            fact = UnknownRow(kind)
        case {"done": _}:
            fact = facts.TurnDone()
        case _:
            fact = facts.Ignored("row", "it has no content")
    return (SessionEntry(fields.get("at"), fact),)


def _root(place: AgentPaths) -> Path:
    return place.directory or Path(place.environ["HOME"])


def _find(place: AgentPaths) -> Iterator[FoundSession]:
    return find_session_files(_root(place), "*.jsonl")


STORE = SessionStore(root=_root, find=_find, open=lambda found: JsonLinesReader(found.path, _read))
ADAPTER = replace(scripted_adapter(""), aliases=("by-hand",), models=lambda: MODELS, sessions=lambda: STORE)


def registry() -> AdapterRegistry:
    adapters = AdapterRegistry()
    for name in adapters.names():
        adapters.unregister(name)
    adapters.register(ADAPTER)
    return adapters


def write_session(directory: Path, name: str, *rows: Mapping[str, Any]) -> Path:
    """Write a session to a file and return its path."""
    path = directory / f"{name}.jsonl"
    path.write_bytes(b"".join(msgspec.json.encode(row) + b"\n" for row in ({"session": name}, *rows)))
    return path


def sessions_in(directory: Path, **fields: Any) -> Sessions:
    return Sessions(registry(), environ={"HOME": str(directory)}, **fields)
