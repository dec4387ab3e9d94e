"""Commands over HTTP: the delivery that each response states."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.process.scripted import scripted_adapter
from tests.service.serving import Serving, serving

from agent_mux.sdk.registry import AdapterRegistry

BUSY = "read(); emit(session='S'); emit(text='on it'); "
IDLE = BUSY + "emit(done=True); "
STAYS = "time.sleep(1000)"


@contextmanager
def running(directory: Path, body: str, until: str) -> Iterator[tuple[Serving, str]]:
    """A run of which an event of the type `until` was received."""
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(body + STAYS))
    with serving(directory, adapters) as served:
        run = served.http.post("/v1/runs", json={"agent": "scripted", "prompt": "hi", "interactive": True}).json()
        path = f"/v1/runs/{run['runId']}"
        with served.http.stream("GET", f"{path}/events", headers={"accept": "application/jsonl"}) as lines:
            assert any(f'"type":"{until}"' in line for line in lines.iter_lines())
        yield served, path
        assert served.http.post(f"{path}/abort").status_code == 200


def interrupt(served: Serving, path: str) -> tuple[int, Any, Any]:
    answer = served.http.post(f"{path}/interrupt")
    data = answer.json()
    return answer.status_code, data.get("delivery", data.get("code")), data.get("run", {}).get("state")


@pytest.mark.slow
@pytest.mark.promise("interrupt-twice")
def test_a_second_interruption_is_unneeded(tmp_path: Path) -> None:
    body = BUSY + "read(); read(); emit(stopped=True); "  # the agent stops after another message
    with running(tmp_path, body, "text_delta") as (served, path):
        assert interrupt(served, path) == (200, "applied", "interrupted")
        assert interrupt(served, path) == (200, "unneeded", "interrupted")


@pytest.mark.slow
def test_an_interruption_without_a_turn_is_unneeded(tmp_path: Path) -> None:
    with running(tmp_path, IDLE, "turn_end") as (served, path):
        assert interrupt(served, path) == (200, "unneeded", "running")


@pytest.mark.slow
def test_a_paused_run_cannot_be_interrupted(tmp_path: Path) -> None:
    with running(tmp_path, BUSY, "text_delta") as (served, path):
        assert served.http.post(f"{path}/pause").status_code == 200
        assert interrupt(served, path) == (409, "INVALID_STATE_TRANSITION", None)


def test_the_document_explains_every_delivery(tmp_path: Path) -> None:
    with serving(tmp_path) as served:
        result = served.http.get("/openapi.json").json()["components"]["schemas"]["CommandResult"]
    delivery = result["properties"]["delivery"]
    assert all(f"`{one}`" in delivery["description"] for one in delivery["enum"])
