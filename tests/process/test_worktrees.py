"""Runs in their own git worktrees: concurrent, aborted, and without changes."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import anyio
import pytest
from anyio import to_thread
from tests.process.scripted import MakeClient, ScriptedCodec

from agent_mux import AgentMuxError, RunHandle, Worktree, encode_event, validate
from agent_mux.run.derivation import DerivedRun, derive_events
from agent_mux.worktrees import worktree as module
from agent_mux.worktrees.snapshots import WorkingTreeSnapshots
from agent_mux_testing.torture.census import all_gone

pytestmark = pytest.mark.anyio
GIT = shutil.which("git") or ""

WRITES = """
import pathlib
read(); emit(session="S"); emit(text=os.getcwd())
pathlib.Path("made").write_text(os.environ["NAME"]); emit(done=True); drain()
"""
LOOKS = 'read(); emit(session="S"); emit(text=os.getcwd()); emit(done=True); drain()'
WORKS = """
import pathlib
read(); emit(session="S"); pathlib.Path("made").write_text("half"); emit(text=os.getcwd())
time.sleep(600)
"""


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    place = tmp_path / "repository"
    (place / "sub").mkdir(parents=True)
    (place / "sub" / "file").write_text("file")
    git(place, "init", "--quiet")
    git(place, "add", "--all")
    git(place, "-c", "user.name=n", "-c", "user.email=e", "commit", "--quiet", "--message", "first")
    return place


def git(place: Path, *words: str) -> str:
    return subprocess.run([GIT, *words], cwd=place, capture_output=True, text=True, check=True).stdout.strip()


def worktrees_of(repository: Path) -> int:
    return git(repository, "worktree", "list").count("\n") + 1


async def first_text(run: RunHandle) -> str:
    async for event in run:
        if event.type == "text_delta":
            return event.delta
    raise AssertionError("no text arrived")


async def wait_for_file(path: Path) -> None:
    while not await anyio.Path(path).exists():  # noqa: ASYNC110  # another process creates it
        await anyio.sleep(0.02)


@pytest.mark.slow
async def test_concurrent_runs_use_separate_worktrees_and_keep_their_work(
    make_client: MakeClient, tmp_path: Path, repository: Path
) -> None:
    base = git(repository, "rev-parse", "HEAD")
    with anyio.fail_after(30):
        async with make_client(WRITES) as mux:
            runs = [
                mux.run(prompt="hi", cwd=repository / "sub", isolation="worktree", env={"NAME": name})
                for name in ("one", "two", "three")
            ]
            results = [await run for run in runs]
            streams = [[event async for event in run] for run in runs]
    for run, result, events, name in zip(runs, results, streams, ("one", "two", "three"), strict=True):
        place = tmp_path / "config" / "worktrees" / run.run_id
        assert result.worktree == Worktree(path=str(place), base_commit=base, is_changed=True)
        assert result.to_dict()["worktree"] == {"path": str(place), "baseCommit": base, "isChanged": True}
        assert result.text == str(place / "sub")
        assert (place / "sub" / "made").read_text() == name
        assert (run.header.stream.cwd, run.header.codec.cwd) == (str(place / "sub"), str(place / "sub"))
        assert run.header.options["cwd"] == str(repository / "sub")
        assert [event.message for event in events if event.type == "debug"] == [
            f"the worktree {place} is kept: it has uncommitted changes; see `amux worktrees diff {run.run_id}`"
        ]
        assert validate(events) == []
        derived = derive_events(Path(result.journal or ""), ScriptedCodec)
        assert [encode_event(event) for event in derived] == [encode_event(event) for event in events]
        assert [file.to_dict() for file in result.changed_files] == [
            {"path": "made", "change": "created", "added": 1, "removed": 0}
        ]
        assert DerivedRun(Path(result.journal or ""), ScriptedCodec).result().to_dict() == result.to_dict()
    assert git(repository, "status", "--porcelain") == ""


OWN = ("TMPDIR", "TEMP", "PORT", "AMUX_PORT", "AMUX_PORT_COUNT")
SETUP = "import json, os; json.dump(dict(os.environ), open('seen', 'w'))"
PRINTS_OWN = f"""
import json
read(); emit(session="S"); open(os.environ.get("TMPDIR", ".") + "/left", "w").close()
seen = json.load(open("seen")) if os.path.exists("seen") else os.environ
emit(text=json.dumps([{{name: one.get(name) for name in {OWN}}} for one in (os.environ, seen)]))
emit(done=True); drain()
"""


@pytest.mark.slow
async def test_runs_in_worktrees_have_their_own_temporary_directory_and_ports(
    make_client: MakeClient, repository: Path
) -> None:
    prepared = {"cwd": repository, "isolation": "worktree", "setup_command": [sys.executable, "-c", SETUP]}
    with anyio.fail_after(120):
        async with make_client(PRINTS_OWN) as mux:
            runs = [mux.run(prompt="hi", **prepared) for _ in range(2)]  # at the same time
            one, two = [json.loads((await run).text) for run in runs]
            given = json.loads((await mux.run(prompt="hi", env={"PORT": "8080"}, **prepared)).text)
            shared = json.loads((await mux.run(prompt="hi", cwd=repository)).text)
    for agent, setup in (one, two):
        assert agent == setup
        assert agent["TMPDIR"] == agent["TEMP"]
        assert agent["PORT"] == agent["AMUX_PORT"]
        assert agent["AMUX_PORT_COUNT"] == "10"
        assert not os.path.exists(agent["TMPDIR"])  # noqa: ASYNC240, PTH110  # after the runs
    assert one[0]["TMPDIR"] != two[0]["TMPDIR"]
    assert abs(int(one[0]["PORT"]) - int(two[0]["PORT"])) > 9
    assert [own["PORT"] for own in given] == ["8080", "8080"]
    assert shared[0]["AMUX_PORT"] is None


async def test_unchanged_worktree_is_removed(make_client: MakeClient, repository: Path) -> None:
    (repository / "dirt").write_text("not committed")
    with anyio.fail_after(30):
        async with make_client(LOOKS) as mux:
            run = mux.run(prompt="hi", cwd=repository, isolation="worktree")
            result = await run
            notes = [event.message async for event in run if event.type == "debug"]
    assert result.worktree is not None
    assert (result.exit_reason, result.text, result.worktree.is_changed) == (
        "completed", result.worktree.path, False,
    )  # fmt: skip
    assert notes == ["the worktree begins with 1 uncommitted file (dirt)"]
    assert worktrees_of(repository) == 1


async def test_work_of_an_aborted_run_is_kept(make_client: MakeClient, repository: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WORKS) as mux:
            run = mux.run(prompt="hi", cwd=repository, isolation="worktree", grace_period=0.2)
            place = Path(await first_text(run))
            await run.abort()
            result = await run
    assert (result.exit_reason, result.worktree is not None and result.worktree.is_changed) == ("aborted", True)
    assert (place / "made").read_text() == "half"


async def test_queued_run_has_no_worktree(make_client: MakeClient, tmp_path: Path, repository: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WORKS, max_concurrent_runs=1) as mux:
            first = mux.run(prompt="hi", cwd=repository, isolation="worktree", grace_period=0.2)
            await first_text(first)
            second = mux.run(prompt="hi", cwd=repository, isolation="worktree")
            assert [place.name for place in (tmp_path / "config" / "worktrees").iterdir()] == [first.run_id]
            await second.abort()
            assert (await second).worktree is None
    assert worktrees_of(repository) == 2


async def test_run_ended_while_its_worktree_is_created_has_none(make_client: MakeClient, repository: Path) -> None:
    begun = repository.parent / "begun"
    git(repository, "config", "filter.slow.smudge", f"touch {begun}; sleep 60; cat")
    (repository / ".git" / "info").mkdir(exist_ok=True)
    (repository / ".git" / "info" / "attributes").write_text("file filter=slow\n")
    with anyio.fail_after(30):
        async with make_client(LOOKS) as mux:
            run = mux.run(prompt="hi", cwd=repository, isolation="worktree")
            await wait_for_file(begun)
            await run.abort()
            result = await run
    assert (result.exit_reason, result.worktree) == ("aborted", None)
    assert worktrees_of(repository) == 1


async def test_failed_start_leaves_no_worktree(make_client: MakeClient, repository: Path) -> None:
    with anyio.fail_after(30):
        async with make_client("", argv=("/does/not/exist",)) as mux:
            result = await mux.run(prompt="hi", cwd=repository, isolation="worktree")
    assert (result.exit_reason, result.worktree is not None and result.worktree.is_changed) == ("crashed", False)
    assert worktrees_of(repository) == 1


async def test_worktree_failure_is_the_reason_of_the_failed_start(
    make_client: MakeClient, tmp_path: Path, repository: Path
) -> None:
    (tmp_path / "config").mkdir()
    (tmp_path / "config" / "worktrees").write_text("in the way")
    with anyio.fail_after(30):
        async with make_client(LOOKS) as mux:
            result = await mux.run(prompt="hi", cwd=repository, isolation="worktree")
    assert (result.exit_reason, result.worktree) == ("crashed", None)
    assert result.error is not None
    assert "cannot be created" in result.error.message


async def test_worktree_is_kept_if_git_cannot_report_its_changes(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    real = module.RunWorktree._changes

    def refused(self: module.RunWorktree, end: str | None) -> str | None:
        real(self, end)
        raise AgentMuxError("TIMEOUT", "it did not end")

    monkeypatch.setattr(module.RunWorktree, "_changes", refused)
    with anyio.fail_after(30):
        async with make_client(LOOKS) as mux:
            result = await mux.run(prompt="hi", cwd=repository, isolation="worktree")
    assert (result.exit_reason, result.worktree is not None and result.worktree.is_changed) == ("completed", True)
    assert worktrees_of(repository) == 2


async def test_directory_without_a_repository_is_copied(make_client: MakeClient, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "file").write_text("file")
    with anyio.fail_after(30):
        async with make_client(WRITES) as mux:
            run = mux.run(prompt="hi", cwd=source, isolation="worktree", env={"NAME": "one"})
            result = await run
            (kept,) = await to_thread.run_sync(mux.worktrees.list)
            notes = [event.message async for event in run if event.type == "debug"]
    place = tmp_path / "config" / "worktrees" / run.run_id
    assert result.worktree == Worktree(path=str(place), base_commit=None, is_changed=True)
    assert result.text == str(place)
    assert [(file.path, file.change, file.added) for file in result.changed_files] == [("made", "created", 1)]
    assert [one.path for one in kept.changes] == ["made"]
    assert [path.name for path in source.iterdir()] == ["file"]
    assert notes[0] == f"the worktree is a copy of {source}, which is in no git repository"
    assert DerivedRun(Path(result.journal or ""), ScriptedCodec).result().to_dict() == result.to_dict()


async def test_worktree_is_compared_once_for_files_and_for_its_end(
    make_client: MakeClient, monkeypatch: pytest.MonkeyPatch, repository: Path
) -> None:
    taken: list[str] = []
    take = WorkingTreeSnapshots.take

    def counted(self: WorkingTreeSnapshots, *wanted: Callable[[], bool]) -> str:
        taken.append(take(self, *wanted))
        return taken[-1]

    monkeypatch.setattr(WorkingTreeSnapshots, "take", counted)
    with anyio.fail_after(30):
        async with make_client(LOOKS) as mux:
            result = await mux.run(prompt="hi", cwd=repository, isolation="worktree")
    assert result.worktree is not None
    assert (result.worktree.is_changed, len(taken), len(set(taken))) == (False, 2, 1)


@pytest.mark.slow
async def test_run_can_start_in_the_worktree_of_an_earlier_run(make_client: MakeClient, repository: Path) -> None:
    with anyio.fail_after(30):
        async with make_client(WRITES) as mux:
            first = await mux.run(prompt="hi", cwd=repository, isolation="worktree", env={"NAME": "one"})
            assert first.worktree is not None
            second = await mux.run(prompt="hi", cwd=first.worktree.path, env={"NAME": "two"})
            assert (second.text, second.worktree) == (first.worktree.path, None)
    assert (Path(first.worktree.path) / "made").read_text() == "two"


ASKS = "read(); emit(session='S'); emit(ask='git push'); emit(text=read()['answer']); emit(done=True); drain()"


async def test_hooks_are_found_from_the_requested_directory(
    make_client: MakeClient, tmp_path: Path, repository: Path
) -> None:
    """Hooks of a project are found from there even if they are not committed."""
    own = tmp_path / "config"
    own.mkdir()
    (own / "rules.toml").write_text('[[rules]]\ndecision = "deny"\ncommands = ["git push"]\nreason = "not that"\n')
    guard = {"id": "0", "handler": "builtin", "target": "policy:rules.toml"}
    (own / "hooks.json").write_text(json.dumps({"hooks": [guard]}))
    (repository / ".agent-mux").mkdir()
    (repository / ".agent-mux" / "hooks.json").write_text('{"hooks": []}')
    with anyio.fail_after(30):
        async with make_client(ASKS) as mux:
            run = mux.run(prompt="hi", cwd=repository / "sub", isolation="worktree", approval_mode="yolo")
            result = await run
            notes = [event.message async for event in run if event.type == "debug"]
    assert (result.text, worktrees_of(repository)) == ("no", 1)
    assert [note for note in notes if f"the hooks of {repository / '.agent-mux'}" in note] != []


CLIENT = """
import anyio, sys
from pathlib import Path
from tests.process.scripted import ScriptedMux
async def main():
    async with ScriptedMux(Path(sys.argv[1])).client(sys.argv[3]) as mux:
        run = mux.run(prompt="hi", cwd=sys.argv[2], isolation="worktree")
        async for event in run:
            if event.type == "text_delta":
                print(event.delta, flush=True)
                await anyio.sleep(600)
anyio.run(main)
"""


def start_client(words: list[str]) -> subprocess.Popen[str]:
    environ = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True, env=environ)


@pytest.mark.slow
async def test_worktree_survives_a_killed_client(tmp_path: Path, repository: Path) -> None:
    words = [sys.executable, "-c", CLIENT, str(tmp_path / "config"), str(repository), WORKS]
    with anyio.fail_after(30), start_client(words) as client:
        assert client.stdout is not None
        place = Path((await to_thread.run_sync(client.stdout.readline)).strip())
        client.send_signal(signal.SIGKILL)
        assert await all_gone(f"AGENT_MUX_RUN_{place.name}", 10) is not None
    assert (place / "made").read_text() == "half"
    assert worktrees_of(repository) == 2
