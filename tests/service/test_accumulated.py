"""Streams of the service omit the accumulated text of delta events, unless a client requests it."""

import json
from collections.abc import Callable, Iterator

import pytest
from docs.pages.http_api import document
from jsonschema import Draft202012Validator
from tests.process.scripted import scripted_adapter
from tests.service.serving import PATIENCE, Serving, serving
from websockets.sync.client import connect

from agent_mux import decode_event
from agent_mux.events import Rebuilder, encode_event
from agent_mux.sdk.registry import AdapterRegistry

DELTAS = 400
TALKS = f"""
read(); emit(session="s")
for number in range({DELTAS}): emit(text="%010d" % number)
emit(over=True); emit(done=True); drain()
"""
Read = Callable[[Serving, str, str], list[bytes]]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Serving]:
    agents = AdapterRegistry()
    agents.register(scripted_adapter(TALKS))
    with serving(tmp_path_factory.mktemp("served"), agents) as server:
        yield server


@pytest.fixture(scope="module")
def run_id(served: Serving) -> str:
    run = str(served.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi"}).json()["runId"])
    served.http.get(f"/v1/runs/{run}/events")
    return run


def sse(served: Serving, run_id: str, query: str) -> list[bytes]:
    text = served.http.get(f"/v1/runs/{run_id}/events?{query}").content
    return [block.partition(b"\ndata: ")[2] for block in text.split(b"\n\n")[:-1]]


def sse_with_snapshots(served: Serving, run_id: str, query: str) -> list[bytes]:
    text = served.http.get(f"/v1/runs/{run_id}/events?snapshots=true&{query}").content
    blocks = [block for block in text.split(b"\n\n")[:-1] if block.startswith(b"id: ")]
    return [block.partition(b"\ndata: ")[2] for block in blocks]


def json_lines(served: Serving, run_id: str, query: str) -> list[bytes]:
    accept = {"accept": "application/jsonl"}
    return served.http.get(f"/v1/runs/{run_id}/events?{query}", headers=accept).content.splitlines()


def websocket(served: Serving, run_id: str, query: str) -> list[bytes]:
    url = served.url.replace("http", "ws", 1)
    with connect(f"{url}/v1/runs/{run_id}/ws?{query}", open_timeout=PATIENCE) as opened:
        return [message.encode() for message in opened if isinstance(message, str)]


READERS = pytest.mark.parametrize("read", [sse, sse_with_snapshots, json_lines, websocket])


@pytest.mark.slow
@READERS
def test_deltas_have_no_accumulated_text_unless_requested(served: Serving, run_id: str, read: Read) -> None:
    lines = read(served, run_id, "")
    deltas = [one for one in map(json.loads, lines) if one["type"] == "text_delta"]
    assert len(deltas) == DELTAS
    assert not any("accumulated" in one for one in deltas)
    assert lines == read(served, run_id, "accumulated=false")


@READERS
def test_requested_accumulated_text_equals_the_rebuilt_one(served: Serving, run_id: str, read: Read) -> None:
    rebuilder = Rebuilder()
    rebuilt = [rebuilder.decode(line) for line in read(served, run_id, "")[:-1]]
    full = read(served, run_id, "accumulated=true")[:-1]
    assert [encode_event(event) for event in rebuilt] == full
    last = [event for event in map(decode_event, full) if event.type == "text_delta"][-1]
    assert last.accumulated == "".join(f"{number:010d}" for number in range(DELTAS))


def test_the_size_of_a_stream_grows_with_its_text(served: Serving, run_id: str) -> None:
    compact, full = (sum(map(len, sse(served, run_id, query))) for query in ("", "accumulated=true"))
    assert full - compact > 10 * sum(range(DELTAS))


@pytest.mark.parametrize("query", ["", "accumulated=true"])
def test_both_forms_match_the_published_schema(served: Serving, run_id: str, query: str) -> None:
    kept = document()
    schema = kept["paths"]["/v1/runs/{run_id}/events"]["get"]["responses"]["200"]["content"]["application/jsonl"]
    checker = Draft202012Validator({**schema["schema"], "components": kept["components"]})
    for line in json_lines(served, run_id, query)[:8]:
        checker.validate(json.loads(line))
