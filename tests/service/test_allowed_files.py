"""Files that options name have to be inside the allowed directories, whatever option and agent name them."""

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.service.serving import Serving, serving

from agent_mux.sdk.options import RunOptions
from agent_mux.sdk.registry import AdapterRegistry

SCRIPT = 'closing = "played"\n'
DEMO = {"agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with an allowed one, `root`, and the same files inside and outside of it."""
    place = tmp_path_factory.mktemp("place")
    (place / "root").mkdir()
    return place


@pytest.fixture(scope="module")
def served(place: Path) -> Iterator[Serving]:
    with serving(place / "config", roots=[place / "root"]) as server:
        run = server.http.post("/v1/runs", json=DEMO).json()["runId"]
        server.http.get(f"/v1/runs/{run}/events")
        journal = Path(server.http.get(f"/v1/runs/{run}").json()["journal"])
        for directory in (place, place / "root"):
            shutil.copy(journal, directory / "a.journal")
            (directory / "script.toml").write_text(SCRIPT)
        (place / "root" / "link.journal").symlink_to(place / "a.journal")
        (place / "root" / "link.toml").symlink_to(place / "script.toml")
        yield server


def create(served: Serving, **fields: Any) -> tuple[int, Any]:
    answer = served.http.post("/v1/runs", json=fields)
    return answer.status_code, answer.json()


@pytest.mark.slow
@pytest.mark.parametrize("name", ["{place}/a.journal", "{place}/root/../a.journal", "{place}/root/link.journal"])
def test_a_recording_outside_of_the_roots_is_refused(served: Serving, place: Path, name: str) -> None:
    status, answer = create(served, agent="replay", prompt=name.format(place=place))
    assert status == 422
    assert answer["fields"][0]["path"] == "prompt"
    assert answer["fields"][0]["allowed"] == f"a path in {place / 'root'}"


def test_the_refusal_does_not_reveal_whether_a_file_exists(served: Serving, place: Path) -> None:
    answers = [create(served, agent="replay", prompt=f"{place}/{name}")[1] for name in ("a.journal", "b.journal")]
    assert [one["fields"][0]["allowed"] for one in answers] == [f"a path in {place / 'root'}"] * 2


@pytest.mark.parametrize("model", ["scripted:{}/script.toml", "replay:{}/a.jsonl", "replay:strict:{}/a.jsonl"])
@pytest.mark.parametrize("directory", ["{place}", "..", "{place}/root/.."])
def test_a_model_outside_of_the_roots_is_refused(served: Serving, place: Path, model: str, directory: str) -> None:
    named = model.format(directory.format(place=place))
    status, answer = create(served, agent="native", prompt="hi", model=named)
    assert status == 422
    assert answer["fields"][0]["path"] == "model"


def test_a_relative_path_starts_at_the_first_root(served: Serving, place: Path) -> None:
    (place / "root" / "inner").mkdir(exist_ok=True)
    status, run = create(served, agent="native", prompt="hi", model="scripted:script.toml", cwd="inner")
    assert status == 201, run
    assert run["model"] == f"scripted:{place}/root/script.toml"


@pytest.mark.parametrize("agent", ["pi", "omp", "claude"])
@pytest.mark.parametrize("field", ["sessionId", "forkSessionId"])
@pytest.mark.parametrize("name", ["{place}/a.jsonl", "../a.jsonl", "../../etc/passwd", "{place}/root/link.toml"])
def test_a_session_file_outside_of_the_roots_is_refused(
    served: Serving, place: Path, agent: str, field: str, name: str
) -> None:
    status, answer = create(served, agent=agent, prompt="hi", **{field: name.format(place=place)})
    assert status == 422
    assert answer["fields"][0]["path"] == field
    assert answer["fields"][0]["allowed"] == f"a path in {place / 'root'}"


@pytest.mark.parametrize(("fields", "named"), [
    ({"fallback": ["native:{outside}"]}, "fallback[0]"),
    ({"fallback": ["claude", "native:replay:../a.jsonl"]}, "fallback[1]"),
    ({"fallbackModel": "{outside}"}, "fallbackModel"),
    ({"nativeOptions": {"agentFile": "../agent.md"}}, "nativeOptions.agentFile"),
    ({"nativeOptions": {"agentFile": "~/agent.md"}}, "nativeOptions.agentFile"),
    ({"nativeOptions": {"agentsDocs": ["a.md", "../b.md"]}}, "nativeOptions.agentsDocs[1]"),
    ({"nativeOptions": {"skills": ["../skills"]}}, "nativeOptions.skills[0]"),
    ({"nativeOptions": {"openapi": [{"document": "../api.json"}]}}, "nativeOptions.openapi[0]"),
])  # fmt: skip
def test_files_that_further_options_name_outside_of_the_roots_are_refused(
    served: Serving, place: Path, fields: dict[str, Any], named: str
) -> None:
    given = json.loads(json.dumps(fields).replace("{outside}", f"scripted:{place}/script.toml"))
    status, answer = create(served, agent="native", prompt="hi", model="scripted:script.toml", **given)
    assert status == 422
    assert [one["path"] for one in answer["fields"]] == [named]
    assert answer["fields"][0]["allowed"] == f"a path in {place / 'root'}"


def test_the_prompt_of_a_run_names_the_recording_of_a_fallback(served: Serving, place: Path) -> None:
    status, answer = create(served, agent="native", prompt=f"{place}/a.journal", fallback=["replay"])
    assert status == 422
    assert answer["fields"][0]["path"] == "prompt"


@pytest.mark.slow
def test_a_run_cannot_change_to_a_model_outside_of_the_roots(served: Serving, place: Path) -> None:
    status, run = create(served, agent="native", prompt="hi", model="scripted:script.toml", interactive=True)
    assert status == 201, run
    url = f"/v1/runs/{run['runId']}"
    answer = served.http.post(f"{url}/set-model", json={"model": f"scripted:{place}/script.toml"})
    served.http.post(f"{url}/abort")
    assert answer.status_code == 422
    assert answer.json()["fields"][0]["path"] == "model"


def test_a_linked_model_is_refused(served: Serving) -> None:
    assert create(served, agent="native", prompt="hi", model="scripted:link.toml")[0] == 422


@pytest.mark.parametrize("body", [
    {"agent": "replay", "prompt": "{place}/root/a.journal"},
    {"agent": "native", "prompt": "hi", "model": "scripted:script.toml"},
    {"agent": "native", "prompt": "hi", "model": "scripted:{place}/root/script.toml"},
])  # fmt: skip
def test_files_inside_of_the_roots_are_used(served: Serving, place: Path, body: dict[str, Any]) -> None:
    status, run = create(served, **json.loads(json.dumps(body).replace("{place}", str(place))))
    assert status == 201, run
    served.http.get(f"/v1/runs/{run['runId']}/events")
    assert served.http.get(f"/v1/runs/{run['runId']}").json()["exitReason"] == "completed"


@pytest.mark.slow
def test_a_file_that_a_profile_of_the_operator_names_is_trusted(served: Serving, place: Path) -> None:
    fields = {"agent": "native", "model": f"scripted:{place}/script.toml"}
    served.http.put("/v1/profiles/scripted?scope=global", json=fields).raise_for_status()
    status, run = create(served, profile="scripted", prompt="hi")
    assert status == 201, run
    served.http.get(f"/v1/runs/{run['runId']}/events")


def test_every_adapter_names_files_without_reading_or_raising() -> None:
    adapters = AdapterRegistry()
    for name in adapters.names():
        for text in ("", "demo", "x" * 10_000, "~nobody-at-all", "scripted:", "a:b:c", "\udcff"):
            named = adapters.get(name).named_files(RunOptions(agent=name, prompt=text, model=text, session_id=text))
            assert all(isinstance(path, str) for path in named.values()), name
