"""Files and the patch of a run over HTTP."""

import os
import signal
import subprocess
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.process.scripted import scripted_adapter
from tests.service.durable.processes import ServerProcess, until
from tests.service.keys import bearing, make_token
from tests.service.serving import Serving, serving

from agent_mux import RemoteMux
from agent_mux.run.changed_files import ChangedFile
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux.service.files import changes
from agent_mux.service.files.changes import CLOCK_STEP
from agent_mux.service.routes import files as routes
from agent_mux.settings.allowed_directories import AllowedDirectories
from agent_mux.worktrees.repositories import current_commit

GIT = {
    "PATH": os.environ["PATH"],
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_CONFIG_NOSYSTEM": "1",
    **{f"GIT_{who}_{what}": "x@example.com" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")},
}
WORK = """
read(); emit(session="s")
exec(os.environ["AGENT_WORK"])
emit(text="done"); emit(over=True); emit(done=True); drain()
"""


def git(directory: Path, *words: str) -> str:
    done = subprocess.run(
        ["git", "-c", "commit.gpgsign=false", *words],
        cwd=directory,
        env=GIT,
        capture_output=True,
        text=True,
        check=True,
    )
    return done.stdout.strip()


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A repository with a commit, and with changes that no run made."""
    project = tmp_path / "project"
    (project / "sub").mkdir(parents=True)
    git(project, "init", "-q", "-b", "main")
    files = {"kept.txt": "kept\n", "edited.txt": "one\ntwo\n", "gone.txt": "gone\n", "sub/deep.txt": "deep\n"}
    for name, text in {**files, "dirty.txt": "clean\n", ".gitignore": "*.log\n"}.items():
        (project / name).write_text(text)
    (project / "image.bin").write_bytes(bytes(range(256)))
    git(project, "add", ".")
    git(project, "commit", "-qm", "first")
    (project / "dirty.txt").write_text("changed before the run\n")
    (project / ".env").write_text("KEY=secret\n")
    time.sleep(2 * CLOCK_STEP / 1000)  # a change this short before a run counts as one of the run
    return project


class Runs:
    """Runs of a scripted agent in a project."""

    def __init__(self, served: Serving, project: Path) -> None:
        self.served, self.http, self.project = served, served.http, project

    def run(self, work: str, **options: Any) -> str:
        """Let an agent do some work; return the id of the run, which is over."""
        body = {"agent": "scripted", "prompt": "hi", "cwd": str(self.project), "env": {"AGENT_WORK": work}, **options}
        answer = self.http.post("/v1/runs", json=body)
        assert answer.status_code == 201, answer.text
        run_id = str(answer.json()["runId"])
        view = until(lambda: (one := self.http.get(f"/v1/runs/{run_id}").json()).get("exitReason") and one)
        assert view["exitReason"] == "completed", view
        return run_id

    def get(self, run_id: str, place: str, **query: Any) -> httpx.Response:
        return self.http.get(f"/v1/runs/{run_id}/{place}", params=query)

    def files(self, run_id: str) -> dict[str, dict[str, Any]]:
        answer = self.get(run_id, "files")
        assert answer.status_code == 200, answer.text
        return {one.pop("path"): one for one in answer.json()["files"]}


@pytest.fixture
def runs(tmp_path: Path, project: Path) -> Iterator[Runs]:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(WORK))
    with serving(tmp_path / "config", adapters, roots=[tmp_path]) as served:
        yield Runs(served, project)


CHANGES = """
open("edited.txt", "w").write("one\\n2\\nthree\\n"); os.unlink("gone.txt")
os.mkdir("new dir"); open("new dir/ü.txt", "w").write("new\\n")
open("debug.log", "w").write("ignored")
"""
BINARY_CHANGE = 'open("image.bin", "wb").write(bytes(300))'


def test_the_files_that_a_run_changed_are_listed(runs: Runs) -> None:
    run = runs.run(CHANGES + BINARY_CHANGE)
    assert runs.files(run) == {
        "edited.txt": {"change": "modified", "added": 2, "removed": 1},
        "gone.txt": {"change": "deleted", "added": 0, "removed": 1},
        "image.bin": {"change": "modified", "binary": True},
        "new dir/ü.txt": {"change": "created", "added": 1, "removed": 0},
    }
    answer = runs.get(run, "files").json()
    assert (answer["fromGit"], answer["base"]) == (True, git(runs.project, "rev-parse", "HEAD"))
    assert git(runs.project, "diff", "--cached", "--name-only") == "", "the index of the repository is unchanged"


@pytest.mark.slow
def test_the_patch_applies_to_the_base(runs: Runs, tmp_path: Path) -> None:
    patch = runs.get(runs.run(CHANGES), "patch")
    assert patch.status_code == 200
    assert patch.headers["content-type"].startswith("text/x-diff")
    assert patch.headers["content-disposition"] == "attachment"
    clone = tmp_path / "clone"
    git(tmp_path, "clone", "-q", str(runs.project), str(clone))
    subprocess.run(["git", "apply", "-"], cwd=clone, env=GIT, input=patch.content, check=True)
    assert (clone / "edited.txt").read_text() == "one\n2\nthree\n"
    assert (clone / "new dir" / "ü.txt").read_text() == "new\n"
    assert not (clone / "gone.txt").exists()


def test_a_binary_file_is_one_line_of_the_patch(runs: Runs) -> None:
    run = runs.run(CHANGES + BINARY_CHANGE)
    text = runs.get(run, "patch", path="image.bin").text
    assert text.splitlines()[-1] == "Binary files a/image.bin and b/image.bin differ"
    assert "edited.txt" not in text
    assert "KEY=secret" not in runs.get(run, "patch").text, "a file that was there before is not part of the patch"


@pytest.mark.slow
def test_commits_of_the_agent_are_part_of_its_changes(runs: Runs) -> None:
    work = "open('edited.txt', 'a').write('committed\\n'); import subprocess; subprocess.run(['git', '-c', "
    work += "'user.name=x', '-c', 'user.email=x@x', 'commit', '-qam', 'by the agent'], check=True)"
    run = runs.run(work)
    assert "edited.txt" in runs.files(run)
    assert "+committed" in runs.get(run, "patch").text


def test_only_the_working_directory_is_compared(runs: Runs) -> None:
    run = runs.run(
        "open('deep.txt', 'w').write('x'); open('../kept.txt', 'w').write('x')", cwd=str(runs.project / "sub")
    )
    assert list(runs.files(run)) == ["deep.txt"]
    assert "kept" not in runs.get(run, "patch").text


@pytest.mark.slow
def test_a_worktree_is_compared_with_its_commit(runs: Runs) -> None:
    run = runs.run(CHANGES, isolation="worktree")
    assert "new dir/ü.txt" in runs.files(run)
    assert "+new" in runs.get(run, "patch").text
    assert runs.get(run, "files/new dir/ü.txt").content == b"new\n"
    assert not (runs.project / "new dir").exists()
    unchanged = runs.get(runs.run("pass", isolation="worktree"), "files")
    assert (unchanged.status_code, unchanged.json()["code"]) == (404, "NOT_FOUND")
    assert "a worktree without changes is removed" in unchanged.json()["detail"]


@pytest.mark.slow
def test_copy_of_a_directory_is_compared_with_its_start(runs: Runs, tmp_path: Path) -> None:
    source = tmp_path / "source"
    source.mkdir()
    (source / "edited.txt").write_bytes(b"one\r\ntwo\n")
    (source / "gone.txt").write_text("gone\n")
    run = runs.run(CHANGES, cwd=str(source), isolation="worktree")
    assert {path: one["change"] for path, one in runs.files(run).items()} == {
        "debug.log": "created",
        "edited.txt": "modified",
        "gone.txt": "deleted",
        "new dir/ü.txt": "created",
    }
    assert runs.get(run, "files").json()["fromGit"] is True
    assert "-one\r\n" in runs.get(run, "patch").text
    assert runs.get(run, "files/new dir/ü.txt").content == b"new\n"
    result = runs.http.get(f"/v1/runs/{run}").json()["result"]
    assert result["worktree"]["baseCommit"] is None
    assert sorted(path.name for path in source.iterdir()) == ["edited.txt", "gone.txt"]


@pytest.mark.slow
def test_changes_are_known_after_the_server_was_killed(tmp_path: Path, project: Path) -> None:
    with ServerProcess(tmp_path / "config", WORK, roots=[str(tmp_path)]) as server:
        run = server.create(cwd=str(project), env={"AGENT_WORK": CHANGES + "\ntime.sleep(1000)"})
        path = f"/v1/runs/{run}/files"
        before = until(lambda: len((found := server.http.get(path).json()).get("files", ())) == 3 and found)
        server.end(signal.SIGKILL)
    with ServerProcess(tmp_path / "config", WORK, roots=[str(tmp_path)]) as server:
        assert server.run(run)["state"] == "lost"
        assert server.http.get(path).json() == before
        assert "+three" in server.http.get(f"/v1/runs/{run}/patch").text


# -- without git


def test_without_a_repository_there_is_no_patch(runs: Runs, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    run = runs.run("open('made.txt', 'w').write('x')", cwd=str(bare))
    patch = runs.get(run, "patch")
    assert (patch.status_code, patch.json()["code"]) == (404, "NOT_FOUND")
    assert runs.get(run, "files/made.txt").content == b"x"


def test_without_a_repository_the_files_are_those_of_the_events(runs: Runs, tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    bare.mkdir()
    work = f"for path in ('made.txt', {str(bare / 'sub/other.txt')!r}, '/etc/x'): emit(wrote=path)"
    run = runs.run(work, cwd=str(bare))
    assert runs.get(run, "files").json() == {
        "files": [{"path": "made.txt", "change": "created"}, {"path": "sub/other.txt", "change": "created"}],
        "fromGit": False,
    }


def test_ignored_files_are_listed_if_an_event_reports_them(project: Path) -> None:
    started_at = int(time.time() * 1000) + 1000
    base = git(project, "rev-parse", "HEAD")
    where = changes.RunWorkspace(directory=project, is_own=False, roots=[project], base=base, started_at=started_at)
    (project / ":(top)debug.log").write_text("ignored")
    reported = {path: ChangedFile(path, "modified") for path in (":(top)debug.log", "kept.txt", "dirty.txt")}
    found = [(one.path, one.change) for one in changes.changes_of(where, reported).files]
    assert found == [(":(top)debug.log", "modified"), ("dirty.txt", "modified")]


def test_reported_files_of_a_repository_inside_and_outside_hide_no_others(project: Path) -> None:
    (project / "lib").mkdir()
    git(project / "lib", "init", "-q")
    git(project / "lib", "commit", "-qm", "first", "--allow-empty")
    git(project, "add", "lib")
    started_at = int(time.time() * 1000) + 1000
    base = git(project, "rev-parse", "HEAD")
    where = changes.RunWorkspace(directory=project, is_own=False, roots=[project], base=base, started_at=started_at)
    for name in ("debug.log", "lib/a.txt"):
        (project / name).write_text("x")
    reported = {path: ChangedFile(path, "created") for path in ("../x", "debug.log", "lib/a.txt")}
    found = {one.path for one in changes.changes_of(where, reported).files}
    assert {"debug.log", "lib/a.txt"} <= found
    assert "../x" not in found


def test_a_repository_that_the_agent_replaced_is_not_compared(runs: Runs) -> None:
    run = runs.run(
        "import shutil, subprocess; shutil.rmtree('.git'); subprocess.run(['git', 'init', '-q'], check=True)"
    )
    assert runs.get(run, "files").json()["fromGit"] is False
    assert runs.get(run, "patch").status_code == 404


# -- reading files


@pytest.mark.slow
def test_a_file_is_read_whole_and_in_parts(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    run = runs.run("open('big.bin', 'wb').write(bytes(range(200)))")
    whole = runs.get(run, "files/big.bin")
    assert (whole.content, whole.headers["x-file-size"]) == (bytes(range(200)), "200")
    assert whole.headers["content-type"] == "application/octet-stream"
    assert whole.headers["content-disposition"] == "attachment"
    assert runs.get(run, "files/big.bin", offset=190, limit=100).content == bytes(range(190, 200))
    assert runs.get(run, "files/big.bin", offset=500).content == b""
    monkeypatch.setattr(routes, "LARGEST_PART", 100)
    refused = runs.get(run, "files/big.bin")
    assert refused.status_code == 413
    assert "200 bytes" in refused.json()["detail"]
    assert runs.get(run, "files/big.bin", offset=100).content == bytes(range(100, 200))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("link.txt", 404),
        ("linked/passwd", 404),
        ("sub%2F..%2F..%2Foutside.txt", 422),
        ("%2e%2e/outside.txt", 422),
        ("..%2foutside.txt", 422),
        ("%2Fetc%2Fpasswd", 422),
        ("fifo", 404),
        ("sub", 404),
        ("missing", 404),
        ("nul%00", 422),
        ("", 422),
    ],
)
def test_nothing_outside_of_the_working_directory_is_read(runs: Runs, path: str, status: int) -> None:
    (runs.project.parent / "outside.txt").write_text("secret")
    run = runs.run(
        "os.symlink('../outside.txt', 'link.txt'); os.symlink('/etc', 'linked'); os.mkfifo('fifo')",
    )
    host, port = runs.served.url.removeprefix("http://").split(":")
    with httpx.Client(base_url=f"http://{host}:{port}", timeout=30) as client:
        request = client.build_request("GET", "/")
        request.url = request.url.copy_with(raw_path=f"/v1/runs/{run}/files/{path}".encode())
        answer = client.send(request)
    assert answer.status_code == status, answer.text
    assert "secret" not in answer.text
    assert "root:" not in answer.text


def test_a_link_in_a_patch_is_its_target_and_not_its_content(runs: Runs) -> None:
    (runs.project.parent / "outside.txt").write_text("secret")
    text = runs.get(runs.run("os.symlink('../outside.txt', 'link.txt')"), "patch").text
    assert "+../outside.txt" in text
    assert "secret" not in text


@pytest.mark.slow
def test_configuration_of_the_repository_starts_no_program(runs: Runs, tmp_path: Path) -> None:
    mark = tmp_path / "executed"
    settings = {
        "filter.evil.clean": f"touch {mark}; cat",
        "filter.evil.process": f"touch {mark}",
        "diff.evil.command": f"touch {mark}",
        "diff.evil.textconv": f"touch {mark}",
        "diff.external": f"touch {mark}",
        "core.fsmonitor": f"touch {mark}",
        "core.pager": f"touch {mark}",
        "core.worktree": "/etc",
    }
    work = (
        f"import subprocess\nfor pair in {settings!r}.items(): subprocess.run(['git', 'config', *pair], check=True)\n"
    )
    work += "open('.gitattributes', 'w').write('* filter=evil diff=evil\\n'); open('edited.txt', 'w').write('x')"
    run = runs.run(work)
    assert "edited.txt" in runs.files(run)
    assert "-two" in runs.get(run, "patch").text
    assert not mark.exists()


@pytest.mark.slow
def test_a_repository_elsewhere_is_not_shown(runs: Runs, tmp_path_factory: pytest.TempPathFactory) -> None:
    private = tmp_path_factory.mktemp("private")
    git(private, "init", "-q")
    (private / "secret.txt").write_text("secret\n")
    git(private, "add", ".")
    git(private, "commit", "-qm", "private")
    work = f"import shutil; shutil.rmtree('.git'); open('.git', 'w').write('gitdir: {private}/.git')"
    run = runs.run(work)
    assert runs.get(run, "files").json() == {"files": [], "fromGit": False}
    assert runs.get(run, "patch").status_code == 404


@pytest.mark.slow
def test_a_directory_that_is_no_root_any_more_is_refused(runs: Runs, tmp_path: Path) -> None:
    run = runs.run(CHANGES)
    other = tmp_path / "other"
    other.mkdir()
    object.__setattr__(runs.served.service, "roots", AllowedDirectories([other]))
    for path in ("files", "patch", "files/edited.txt"):
        answer = runs.get(run, path)
        assert (answer.status_code, answer.json()["code"]) == (403, "FORBIDDEN")


@pytest.mark.slow
def test_long_lists_and_patches_are_bounded(runs: Runs, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(changes, "MAX_FILES", 3)
    monkeypatch.setattr(changes, "LARGEST_PATCH", 2000)
    run = runs.run("for n in range(20): open(f'f{n:02}', 'w').write('x' * 100)")
    answer = runs.get(run, "files").json()
    assert ([one["path"] for one in answer["files"]], answer["truncated"]) == (["f00", "f01", "f02"], True)
    refused = runs.get(run, "patch")
    assert (refused.status_code, refused.json()["code"]) == (422, "VALIDATION_ERROR")
    assert runs.get(run, "patch", path=["f00", "f19"]).text.count("diff --git") == 2


@pytest.mark.slow
def test_reading_any_file_needs_the_scope_run(tmp_path: Path, project: Path) -> None:
    tokens = {scope: make_token(tmp_path / "config", f"{scope}er", scope) for scope in ("read", "run")}
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter(WORK))
    with serving(tmp_path / "config", adapters, roots=[tmp_path]) as served:
        served.http.headers.update(bearing(tokens["run"]))
        run = Runs(served, project).run(CHANGES + BINARY_CHANGE)
        for path, status in (("files", 200), ("patch", 200), ("files/.env", 403), ("files%2F.env", 403)):
            answer = served.http.get(f"/v1/runs/{run}/{path}", headers=bearing(tokens["read"]))
            assert answer.status_code == status, path
        mux = RemoteMux(served.url, token=tokens["run"])
        found = mux.runs.files(run)
        assert found.from_git
        assert [(one.path, one.change, one.binary) for one in found.files if one.binary] == [
            ("image.bin", "modified", True)
        ]
        assert mux.runs.read_file(run, ".env") == b"KEY=secret\n"
        assert mux.runs.read_file(run, "new dir/ü.txt", offset=1, limit=2) == b"ew"
        assert mux.runs.patch(run, ["gone.txt"]).endswith(b"-gone\n")


@pytest.mark.slow
def test_a_run_without_events_is_answered_at_once(tmp_path: Path, project: Path) -> None:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter("open('edited.txt', 'w').write('x'); time.sleep(1000)"))
    with serving(tmp_path / "config", adapters, roots=[tmp_path]) as served:
        body = {"agent": "scripted", "prompt": "hi", "cwd": str(project)}
        run = served.http.post("/v1/runs", json=body).json()["runId"]
        path = f"/v1/runs/{run}/files"
        (found,) = until(lambda: served.http.get(path).json().get("files"))
    assert found["path"] == "edited.txt"


@pytest.mark.slow
def test_a_run_that_has_not_started_has_no_files(tmp_path: Path) -> None:
    adapters = AdapterRegistry()
    adapters.register(scripted_adapter("read(); time.sleep(1000)"))
    with serving(tmp_path / "config", adapters, roots=[tmp_path], max_concurrent_runs=1) as served:
        body = {"agent": "scripted", "prompt": "hi"}
        _, waiting = (served.http.post("/v1/runs", json=body).json()["runId"] for _ in range(2))
        answer = served.http.get(f"/v1/runs/{waiting}/files")
        assert (answer.status_code, answer.json()["code"]) == (404, "NOT_FOUND")
        assert served.http.get(f"/v1/runs/{'0' * 26}/files").json()["code"] == "RUN_NOT_FOUND"


# -- the commit of the start


def test_the_current_commit_is_found_in_each_layout(project: Path, tmp_path: Path) -> None:
    head = git(project, "rev-parse", "HEAD")
    assert current_commit(project / "sub") == head
    git(project, "pack-refs", "--all")
    assert current_commit(project) == head
    git(project, "worktree", "add", "-q", "-b", "other", str(tmp_path / "tree"))
    assert current_commit(tmp_path / "tree") == head
    git(project, "checkout", "-q", "--detach")
    assert current_commit(project) == head
    empty = tmp_path / "empty"
    empty.mkdir()
    assert current_commit(empty) is None
    (project / "sub" / ".git").mkdir()  # git passes over it as well
    assert current_commit(project / "sub") == git(project / "sub", "rev-parse", "HEAD") == head
    git(empty, "init", "-q")
    assert current_commit(empty) is None
