"""Comparisons of directories in every state: each works, or is one sentence with the way out."""

from pathlib import Path

import pytest
from tests.process.compared_agents import git, make_repository, outcomes, run_comparison, state_of, the_trial

from agent_mux.compare.records import Comparison
from agent_mux.compare.store import Comparisons
from agent_mux.errors import AgentMuxError

pytestmark = pytest.mark.anyio
PASSES = {"fixes": ("pass", "completed"), "null": ("fail", "no_change")}


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    return make_repository(tmp_path / "project" / "repository")


async def compare(tmp_path: Path, directory: Path, check: str = "python3 -m unittest -q") -> Comparison:
    comparison = await run_comparison(tmp_path / "config", directory, "fixes", "null", checks=[f"sh -c '{check}'"])
    assert outcomes(comparison) == PASSES
    patch = the_trial(comparison, "fixes").patch
    assert patch is not None
    assert [file.path for file in patch.files] == ["calc.py"]
    return comparison


@pytest.mark.slow
async def test_uncommitted_changes_are_part_of_the_start_and_of_no_patch(tmp_path: Path, repository: Path) -> None:
    (repository / "test_calc.py").write_text((repository / "test_calc.py").read_text() + "# changed\n")
    (repository / "new.py").write_text("")
    git(repository, "stash", "push", "--include-untracked")
    git(repository, "stash", "apply")
    git(repository, "add", "new.py")
    before = state_of(repository)
    comparison = await compare(tmp_path, repository, "grep -q changed test_calc.py && python3 -m unittest -q")
    assert comparison.start is not None
    assert set(comparison.start.changed) == {"new.py", "test_calc.py"}
    assert state_of(repository) == before


@pytest.mark.slow
async def test_ignored_files_are_copied_on_request_only(tmp_path: Path, repository: Path) -> None:
    (repository / ".gitignore").write_text(".env\nsecrets.json\n")
    (repository / ".worktreeinclude").write_text(".env\n")
    (repository / ".env").write_text("KEY=1\n")
    (repository / "secrets.json").write_text("{}\n")
    check = "test -f .env && test ! -e secrets.json && python3 -m unittest -q"
    comparison = await compare(tmp_path, repository, check)
    assert comparison.start is not None
    assert comparison.start.included == (".env",)


@pytest.mark.slow
async def test_submodules_are_part_of_the_start(tmp_path: Path, repository: Path) -> None:
    library = make_repository(tmp_path / "library")
    git(repository, "-c", "protocol.file.allow=always", "submodule", "--quiet", "add", str(library), "library")
    git(repository, "commit", "--quiet", "--message=Add a submodule")
    comparison = await compare(tmp_path, repository, "test -f library/calc.py && python3 -m unittest -q")
    assert comparison.start is not None
    assert comparison.start.submodules == ("library",)


@pytest.mark.slow
async def test_directory_without_a_repository_is_copied_without_secrets(tmp_path: Path, repository: Path) -> None:
    plain = tmp_path / "plain"
    plain.mkdir()
    for name in ("calc.py", "test_calc.py"):
        (plain / name).write_text((repository / name).read_text())
    (plain / ".env").write_text("KEY=1\n")
    comparison = await compare(tmp_path, plain, "test ! -e .env && python3 -m unittest -q")
    assert comparison.start is not None
    assert not comparison.start.is_repository
    assert any(".env" in note for note in comparison.start.notes)


async def test_bare_repository_is_refused_with_the_way_out(tmp_path: Path, repository: Path) -> None:
    git(repository, "clone", "--quiet", "--bare", str(repository), str(tmp_path / "bare"))
    with pytest.raises(AgentMuxError) as caught:
        await run_comparison(tmp_path / "config", tmp_path / "bare", "null")
    assert "\n" not in caught.value.message
    assert "git clone" in caught.value.message or "worktree" in caught.value.message


@pytest.mark.slow
async def test_comparison_that_cannot_be_carried_out_records_why(tmp_path: Path, repository: Path) -> None:
    patch = tmp_path / "other.patch"
    patch.write_text(git(repository, "diff", "main", "solution").replace("a - b", "a * b"))
    for rules, reason in (
        ({"setup_command": ["false"]}, "the setup command `false` failed"),
        ({}, "candidate oracle: its patch does not apply to the start: calc.py: patch does not apply"),
    ):
        with pytest.raises(AgentMuxError, match=reason):
            await run_comparison(tmp_path / "config", repository, f"oracle:{patch}", **rules)
        latest = Comparisons(tmp_path / "config").get()
        assert (latest.status, latest.problem[: len(reason)]) == ("interrupted", reason)
