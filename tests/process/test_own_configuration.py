"""A run does what our files say: `config.json`, a profile; and it is in the index when it is over."""

import json
import logging
from pathlib import Path
from typing import Any

import pytest
from tests.process.installed import Installed
from tests.process.scripted import MakeClient

from agent_mux.journal.run_index import INDEX, IndexRecord, read_index

HELLO = "hear(); say(session='S'); say(text='hello'); say(cost=0.25); say(done=True); rest()"

pytestmark = pytest.mark.anyio


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def write(path: Path, told: dict[str, Any]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(told), encoding="utf-8")


def indexed(place: Path) -> list[IndexRecord]:
    return list(read_index(place / INDEX))


async def test_a_run_is_in_the_index_when_the_client_is_left(make_client: MakeClient, config: Path) -> None:
    async with make_client(HELLO) as mux:
        result = await mux.run(prompt="hi", tags=["a", "b"], project_id="P", model="m")
    [record] = indexed(config)
    assert (record.run_id, record.agent, record.session_id) == (result.run_id, "scripted", "S")
    assert (record.tags, record.project_id, record.model, record.cost) == (("a", "b"), "P", "m", 0.25)
    assert record.timestamp.endswith("Z")


async def test_a_run_in_a_project_is_in_the_index_of_the_project(
    make_client: MakeClient, config: Path, tmp_path: Path
) -> None:
    repo = tmp_path / "repo"
    (repo / ".agent-mux").mkdir(parents=True)
    async with make_client(HELLO) as mux:
        await mux.run(prompt="hi", cwd=repo)
    assert (len(indexed(repo / ".agent-mux")), indexed(config)) == (1, [])


async def test_a_project_that_is_named_and_not_there_is_not_made(
    make_client: MakeClient, config: Path, tmp_path: Path
) -> None:
    async with make_client(HELLO, project_config_dir=tmp_path / "nowhere") as mux:
        await mux.run(prompt="hi")
    assert len(indexed(config)) == 1
    assert not (tmp_path / "nowhere").exists()


async def test_what_did_not_come_to_an_answer_is_there_too(make_client: MakeClient, config: Path) -> None:
    async with make_client("say(session='S'); rest(); time.sleep(600)") as mux:
        run = mux.run(prompt="hi", tags=["t"])
        async for event in run:
            if event.type == "session_start":
                break
    assert [(one.session_id, one.tags) for one in indexed(config)] == [("S", ("t",))]


@pytest.mark.parametrize("how", ["journal", "config"])
async def test_the_index_can_be_switched_off(make_client: MakeClient, config: Path, how: str) -> None:
    if how == "config":
        write(config / "config.json", {"runIndex": False})
    async with make_client(HELLO) as mux:
        assert (await mux.run(prompt="hi", journal=how != "journal")).ok
    assert indexed(config) == []


async def test_an_index_that_cannot_be_written_is_a_warning(
    make_client: MakeClient, config: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (config / INDEX).mkdir(parents=True)
    with caplog.at_level(logging.WARNING, logger="agent_mux"):
        async with make_client(HELLO) as mux:
            assert (await mux.run(prompt="hi")).ok
    [warning] = [one.getMessage() for one in caplog.records if "index" in one.getMessage()]
    assert str(config / INDEX) in warning


async def test_secrets_are_not_in_the_index(
    make_client: MakeClient, config: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    secret = "hunter2-" * 3
    monkeypatch.setenv("SOME_API_KEY", secret)
    async with make_client(HELLO) as mux:
        await mux.run(prompt="hi", tags=[f"with {secret}"], project_id=secret)
    assert secret not in (config / INDEX).read_text()
    assert len(indexed(config)) == 1


async def test_what_a_project_allows_is_told_in_the_stream(make_client: MakeClient, tmp_path: Path) -> None:
    write(tmp_path / "repo" / ".agent-mux" / "config.json", {"approvalMode": "yolo"})
    async with make_client(HELLO) as mux:
        run = mux.run(prompt="hi", cwd=tmp_path / "repo")
        told = [event.message async for event in run if event.type == "debug"]
    assert [one for one in told if one.startswith("approval_mode is as ")]


# -- the installed command


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    made = Installed(tmp_path)
    write(made.home / "repo" / ".agent-mux" / "config.json", {"defaultAgent": "scripted", "tags": ["from-project"]})
    write(made.home / "config" / "config.json", {"timeout": 60_000, "defaultModel": "global-model"})
    write(made.home / "config" / "profiles" / "fast.json", {"model": "fast-model", "maxTurns": 3})
    return made


def header_of(done: Any) -> dict[str, Any]:
    """The options of a run, as its recording has them."""
    from agent_mux.journal.file import JournalReader

    result = json.loads(done.stdout.splitlines()[-1])
    return dict(JournalReader(Path(result["journal"])).header.options)


def test_the_command_does_what_a_profile_and_the_configurations_say(installed: Installed) -> None:
    repo = installed.home / "repo"
    done = installed.run("run", "say hello", "--json", "--cwd", repo, "--profile", "fast", body=HELLO)
    assert (done.returncode, done.stderr) == (0, "")
    options = header_of(done)
    assert (options["agent"], options["model"], options["max_turns"]) == ("scripted", "fast-model", 3)
    assert (options["timeout"], options["tags"], options["prompt"]) == (60.0, ["from-project"], "say hello")
    [record] = indexed(repo / ".agent-mux")
    assert (record.model, record.tags, record.session_id) == ("fast-model", ("from-project",), "S")


def test_what_is_said_explicitly_wins_also_where_it_is_the_default(installed: Installed) -> None:
    project = installed.home / "repo" / ".agent-mux"
    done = installed.run(
        "--project-dir", project, "run", "say hello", "--json", "--timeout", 0, "--model", "mine", body=HELLO
    )
    options = header_of(done)
    assert "timeout" not in options
    assert (options["model"], options["tags"]) == ("mine", ["from-project"])


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["--profile", "fats"], 9, "did you mean 'fast'? [PROFILE_NOT_FOUND]"),
        (["--profile", "a b"], 2, "64 letters, digits, _ or - [VALIDATION_ERROR]"),
        (["--config-dir", "broken"], 7, "config.json is not JSON: line 1, column 2"),
    ],
)
def test_what_cannot_be_used_is_one_line(installed: Installed, arguments: list[str], code: int, told: str) -> None:
    (installed.home / "broken").mkdir()
    (installed.home / "broken" / "config.json").write_text("{")
    done = installed.run("run", "scripted", "hi", *arguments, body=HELLO)
    assert (done.returncode, done.stdout) == (code, "")
    error, *hint = done.stderr.splitlines()
    assert told in error
    assert all(line.startswith("hint: ") for line in hint)


@pytest.mark.parametrize(("mode", "answer"), [("yolo", "yes"), ("deny", "no"), ("prompt", "no")])
def test_the_approval_mode_of_a_file_counts_where_nobody_is_there(installed: Installed, mode: str, answer: str) -> None:
    write(installed.home / "config" / "profiles" / "mode.json", {"approvalMode": mode})
    body = "hear(); say(ask='rm -rf /'); say(text='it was ' + hear()['answer']); say(done=True); rest()"
    done = installed.run("run", "scripted", "hi", "--profile", "mode", body=body)
    assert (done.returncode, done.stdout) == (0, f"it was {answer}\n")


def test_the_recorded_demo_is_the_same_everywhere(installed: Installed) -> None:
    write(installed.home / "config" / "config.json", {"thinkingEffort": "high", "defaultModel": "x", "runIndex": True})
    done = installed.run("demo", "--recorded", AMUX_REPLAY_SPEED="0")
    assert done.returncode == 0
    assert indexed(installed.home / "config") == []
