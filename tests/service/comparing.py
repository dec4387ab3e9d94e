"""Comparisons of a service with scripted agents, as its clients request and read them."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
from tests.process.compared_agents import BODIES, CHECK, make_repository
from tests.process.scripted import scripted_adapter
from tests.service.serving import Serving, serving

from agent_mux.sdk.registry import AdapterRegistry

OPTIONS = {"timeout": 60_000, "gracePeriod": 1000, "approvalMode": "yolo"}
Message = tuple[str, dict[str, Any]]
"""The id and the data of a message."""


def agents(*names: str) -> AdapterRegistry:
    registry = AdapterRegistry()
    for name in names:
        registry.register(scripted_adapter(BODIES[name], agent=name))
    return registry


@contextmanager
def comparing(place: Path, *names: str, **settings: Any) -> Iterator[Serving]:
    """Serve these agents with a repository that has a failing test as the only root."""
    repository = place / "project"
    if not repository.exists():
        make_repository(repository)
    with serving(place / "config", agents(*names), **{"roots": [repository], **settings}) as served:
        yield served


def request_of(*candidates: Any, **fields: Any) -> dict[str, Any]:
    return {"prompt": "fix it", "candidates": list(candidates), "checks": [CHECK], "options": OPTIONS, **fields}


def started(http: httpx.Client, *candidates: Any, **fields: Any) -> str:
    """Start a comparison and return its id."""
    response = http.post("/v1/comparisons", json=request_of(*candidates, **fields))
    assert response.status_code == 201, response.text
    return str(response.json()["id"])


def messages(http: httpx.Client, comparison: str, *, after: str | None = None, until: str = "") -> list[Message]:
    """Return the messages of a comparison until its end, or until a trial has an event of this type."""
    headers = {} if after is None else {"last-event-id": after}
    found: list[Message] = []
    with http.stream("GET", f"/v1/comparisons/{comparison}/events", headers=headers) as response:
        assert response.status_code in {200, 204}, response.read()
        id_ = ""
        for line in response.iter_lines():
            name, _, value = line.partition(": ")
            if name == "id":
                id_ = value
            elif name == "data":
                found.append((id_, json.loads(value)))
                if until and found[-1][1].get("event", {}).get("type") == until:
                    break
    return found


def ended(http: httpx.Client, comparison: str) -> dict[str, Any]:
    """Wait for the end of a comparison and return it."""
    messages(http, comparison)
    view: dict[str, Any] = http.get(f"/v1/comparisons/{comparison}").json()
    return view


def verdicts(view: dict[str, Any]) -> dict[str, str | None]:
    return {trial["id"]: trial["verdict"] for trial in view["report"]["trials"]}
