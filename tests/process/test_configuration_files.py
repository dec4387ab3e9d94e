"""Runs use `config.json` and profiles, and finished runs are in the run index."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.process.installed_command import Installed
from tests.process.scripted import MakeClient

from agent_mux.journal.run_index import INDEX, IndexRecord, read_index

HELLO = "read(); emit(session='S'); emit(text='hello'); emit(cost=0.25); emit(done=True); drain()"

pytestmark = pytest.mark.anyio


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def write(path: Path, content: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(content), encoding="utf-8")


def indexed(place: Path) -> list[IndexRecord]:
    return list(read_index(place / INDEX))


async def test_finished_run_is_in_the_index(make_client: MakeClient, config: Path) -> None:
    async with make_client(HELLO) as mux:
        result = await mux.run(prompt="hi", tags=["a", "b"], project_id="P", model="m")
    [record] = indexed(config)
    assert (record.run_id, record.agent, record.session_id) == (result.run_id, "scripted", "S")
    assert (record.tags, record.project_id, record.model, record.cost) == (("a", "b"), "P", "m", 0.25)
    assert record.timestamp.endswith("Z")


async def test_run_in_a_project_is_in_the_index_of_the_project(
    make_client: MakeClient, config: Path, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    (repo / ".agent-mux").mkdir(parents=True)
    async with make_client(HELLO) as mux:
        await mux.run(prompt="hi", cwd=repo)
    assert (len(indexed(repo / ".agent-mux")), indexed(config)) == (1, [])


async def test_missing_project_directory_is_not_created(make_client: MakeClient, config: Path, tmp_path: Path) -> None:
    async with make_client(HELLO, project_config_dir=tmp_path / "nowhere") as mux:
        await mux.run(prompt="hi")
    assert len(indexed(config)) == 1
    assert not (tmp_path / "nowhere").exists()


@pytest.mark.slow
async def test_unfinished_run_is_in_the_index(make_client: MakeClient, config: Path) -> None:
    async with make_client("emit(session='S'); drain(); time.sleep(600)") as mux:
        run = mux.run(prompt="hi", tags=["t"])
        async for event in run:
            if event.type == "session_start":
                break
    assert [(one.session_id, one.tags) for one in indexed(config)] == [("S", ("t",))]


@pytest.mark.parametrize("how", ["journal", "config"])
async def test_index_can_be_disabled(make_client: MakeClient, config: Path, how: str) -> None:
    if how == "config":
        write(config / "config.json", {"runIndex": False})
    async with make_client(HELLO) as mux:
        assert (await mux.run(prompt="hi", journal=how != "journal")).ok
    assert indexed(config) == []


async def test_unwritable_index_emits_a_warning(
    make_client: MakeClient, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (config / INDEX).mkdir(parents=True)
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        async with make_client(HELLO) as mux:
            assert (await mux.run(prompt="hi")).ok
    [warning] = [one.getMessage() for one in caplog.records if "index" in one.getMessage()]
    assert str(config / INDEX) in warning


async def test_index_contains_no_secrets(
    make_client: MakeClient, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2-" * 3
    monkeypatch.setenv("SOME_API_KEY", secret)
    async with make_client(HELLO) as mux:
        await mux.run(prompt="hi", tags=[f"with {secret}"], project_id=secret)
    assert secret not in (config / INDEX).read_text()
    assert len(indexed(config)) == 1


async def test_approval_mode_of_a_project_is_reported_in_the_events(make_client: MakeClient, tmp_path: Path) -> None:
    write(tmp_path / "repo" / ".agent-mux" / "config.json", {"approvalMode": "yolo"})
    async with make_client(HELLO) as mux:
        run = mux.run(prompt="hi", cwd=tmp_path / "repo")
        messages = [event.message async for event in run if event.type == "debug"]
    assert [one for one in messages if one.startswith("approval_mode ")]


# -- the installed command


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    made = Installed(tmp_path)
    write(made.home / "repo" / ".agent-mux" / "config.json", {"defaultAgent": "scripted", "tags": ["from-project"]})
    write(made.home / "config" / "config.json", {"timeout": 60_000, "defaultModel": "global-model"})
    write(made.home / "config" / "profiles" / "fast.json", {"model": "fast-model", "maxModelCalls": 3})
    return made


def header_of(done: Any) -> dict[str, Any]:
    """Return the options in the journal header of the run."""
    from agent_mux.journal.file import JournalReader

    result = json.loads(done.stdout.splitlines()[-1])
    return dict(JournalReader(Path(result["journal"])).header.options)


@pytest.mark.slow
def test_command_uses_profile_and_configuration_files(installed: Installed) -> None:
    repo = installed.home / "repo"
    done = installed.run("run", "greet me", "--json", "--cwd", repo, "--profile", "fast", body=HELLO)
    assert (done.returncode, done.stderr) == (0, "")
    options = header_of(done)
    assert (options["agent"], options["model"], options["max_model_calls"]) == ("scripted", "fast-model", 3)
    assert (options["timeout"], options["tags"], options["prompt"]) == (60.0, ["from-project"], "greet me")
    [record] = indexed(repo / ".agent-mux")
    assert (record.model, record.tags, record.session_id) == ("fast-model", ("from-project",), "S")


@pytest.mark.slow
def test_explicit_flags_override_files_even_with_default_values(installed: Installed) -> None:
    project = installed.home / "repo" / ".agent-mux"
    done = installed.run(
        "--project-dir", project, "run", "greet me", "--json", "--timeout", 0, "--model", "mine", body=HELLO
    )
    options = header_of(done)
    assert "timeout" not in options
    assert (options["model"], options["tags"]) == ("mine", ["from-project"])


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (["--profile", "fats"], 9, "did you mean 'fast'? [PROFILE_NOT_FOUND]"),
        (["--profile", "a b"], 2, "64 letters, digits, _ or - [VALIDATION_ERROR]"),
        (["--config-dir", "broken"], 7, "config.json is not JSON: line 1, column 2"),
    ],
)
def test_invalid_settings_are_one_error_line(
    installed: Installed, arguments: list[str], code: int, message: str
) -> None:
    (installed.home / "broken").mkdir()
    (installed.home / "broken" / "config.json").write_text("{")
    done = installed.run("run", "scripted", "hi", *arguments, body=HELLO)
    assert (done.returncode, done.stdout) == (code, "")
    error, *hint = done.stderr.splitlines()
    assert message in error
    assert all(line.startswith("hint: ") for line in hint)


@pytest.mark.parametrize(("mode", "answer"), [("yolo", "yes"), ("deny", "no"), ("prompt", "no")])
def test_approval_mode_of_a_profile_applies_without_a_terminal(installed: Installed, mode: str, answer: str) -> None:
    write(installed.home / "config" / "profiles" / "mode.json", {"approvalMode": mode})
    body = "read(); emit(ask='rm -rf /'); emit(text='it was ' + read()['answer']); emit(done=True); drain()"
    done = installed.run("run", "scripted", "hi", "--profile", "mode", body=body)
    assert (done.returncode, done.stdout) == (0, f"it was {answer}\n")


@pytest.mark.slow
def test_recorded_demo_ignores_configuration_files(installed: Installed) -> None:
    write(installed.home / "config" / "config.json", {"thinkingEffort": "high", "defaultModel": "x", "runIndex": True})
    done = installed.run("demo", "--recorded", AMUX_REPLAY_SPEED="0")
    assert done.returncode == 0
    assert indexed(installed.home / "config") == []
