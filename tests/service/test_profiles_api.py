"""Profiles over HTTP: written and removed by the library, with its checks."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.fuzzing import registry
from tests.service.serving import Serving, serving

from agent_mux.redaction import HIDDEN


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    directory = tmp_path_factory.mktemp("profiles")
    (directory / "work").mkdir()
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(directory))
        patch.chdir(directory / "work")
        yield directory


@pytest.fixture(scope="module")
def server(place: Path) -> Iterator[Serving]:
    with serving(place / "config", registry()) as running:
        yield running


@pytest.fixture
def served(server: Serving, place: Path) -> Iterator[Serving]:
    yield server
    for left in place.rglob("profiles/*.json"):
        left.unlink()


def test_a_profile_is_written_read_used_replaced_and_removed(served: Serving, place: Path) -> None:
    file = place / "config" / "profiles" / "quick.json"
    first = {"agent": "replay", "timeout": 60_000, "tags": ["quick"]}
    changed = served.http.put("/v1/profiles/quick", json=first)
    assert changed.json() == {"profile": "quick", "scope": "global", "path": str(file)}
    assert json.loads(file.read_text()) == first | {"timeout": "60s"}
    refused = served.http.put("/v1/profiles/quick", json={"timeout": "60s"})
    assert (refused.status_code, refused.json()["fields"][0]["allowed"]) == (422, "a number of milliseconds")
    assert served.http.get("/v1/profiles/quick").json() == {
        "name": "quick", "fields": first, "sources": dict.fromkeys(first, "global"), "paths": {"global": str(file)},
    }  # fmt: skip
    run = served.http.post("/v1/runs", json={"prompt": "demo", "profile": "quick"}).json()
    assert (run["agent"], run["tags"]) == ("replay", ["quick"])
    served.http.put("/v1/profiles/quick", json={"maxModelCalls": 3}).raise_for_status()
    assert json.loads(file.read_text()) == {"maxModelCalls": 3}
    assert served.http.delete("/v1/profiles/quick").json() == {"profile": "quick", "path": str(file)}
    assert not file.exists()
    assert served.http.delete("/v1/profiles/quick").json()["code"] == "PROFILE_NOT_FOUND"
    assert served.http.get("/v1/profiles").json() == []


def test_a_project_profile_overrides_the_global_one(served: Serving, place: Path) -> None:
    (place / "work" / ".agent-mux").mkdir()
    for scope in ("global", "project"):
        body = {"tags": [scope]}
        served.http.put("/v1/profiles/both", json=body, params={"scope": scope}).raise_for_status()
    assert served.http.get("/v1/profiles/both").json()["fields"] == {"tags": ["project"]}
    which = served.http.delete("/v1/profiles/both")
    assert (which.status_code, which.json()["fields"][0]["path"]) == (422, "scope")
    served.http.delete("/v1/profiles/both", params={"scope": "project"}).raise_for_status()
    assert served.http.get("/v1/profiles/both").json()["fields"] == {"tags": ["global"]}
    shutil.rmtree(place / "work" / ".agent-mux")


@pytest.mark.parametrize(
    ("name", "body", "scope"),
    [
        ("quick", {"prompt": "hi"}, "global"),
        ("quick", {"env": {"A": "b"}}, "global"),
        ("quick", {"nonsense": 1}, "global"),
        ("quick", {"timeout": -1}, "global"),
        ("quick", {"maxModelCalls": "many"}, "global"),
        ("quick", {"tags": ["a\0b"]}, "global"),
        ("quick", [], "global"),
        ("quick", {"maxModelCalls": 1}, "project"),  # there is none
        ("quick", {"maxModelCalls": 1}, "elsewhere"),
        ("a%2Fb", {"maxModelCalls": 1}, "global"),
        ("quick%0A", {"maxModelCalls": 1}, "global"),
    ],
)
def test_what_no_profile_can_be_is_refused_and_not_written(
    served: Serving, place: Path, name: str, body: Any, scope: str
) -> None:
    answer = served.http.put(f"/v1/profiles/{name}", json=body, params={"scope": scope})
    assert (answer.status_code, answer.json()["code"]) == (422, "VALIDATION_ERROR")
    assert not list(place.rglob("profiles/*.json"))


def test_secrets_of_mcp_servers_are_not_returned(served: Serving) -> None:
    secret = "s3cr3t-s3cr3t-s3cr3t"  # noqa: S105  # nobody's
    server = {"name": "docs", "command": "docs", "env": {"API_KEY": secret}}
    served.http.put("/v1/profiles/docs", json={"mcpServers": [server]}).raise_for_status()
    for path in ("/v1/profiles", "/v1/profiles/docs"):
        answer = served.http.get(path).text
        assert secret not in answer
        assert HIDDEN in answer


def test_a_damaged_profile_hides_no_other(served: Serving, place: Path) -> None:
    served.http.put("/v1/profiles/good", json={"maxModelCalls": 1}).raise_for_status()
    (place / "config" / "profiles" / "bad.json").write_text("{")
    bad, good = served.http.get("/v1/profiles").json()
    assert (bad["name"], good["fields"]) == ("bad", {"maxModelCalls": 1})
    assert "is not JSON" in bad["problem"]
    answer = served.http.get("/v1/profiles/bad")
    assert (answer.status_code, answer.json()["code"]) == (500, "CONFIG_ERROR")
