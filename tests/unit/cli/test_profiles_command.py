"""`amux profiles` and `amux init`."""

import json
import re
import stat
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli.conftest import Amux

from agent_mux.cli.completion_engine import complete

ERROR = re.compile(r"error: .+ \[[A-Z_]+\]\n(hint: .+\n)?")


@pytest.fixture(autouse=True)
def repo(amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:  # amux: it has a home of its own
    repo = tmp_path / "repo"
    repo.mkdir()
    monkeypatch.chdir(repo)
    monkeypatch.delenv("AGENT_MUX_PROJECT_DIR", raising=False)
    return repo


@pytest.fixture
def project(repo: Path) -> Path:
    (repo / ".agent-mux").mkdir()
    return repo / ".agent-mux"


@pytest.fixture
def config(tmp_path: Path) -> Path:
    return tmp_path / "config"


def write(path: Path, told: Any) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(told if isinstance(told, str) else json.dumps(told), encoding="utf-8")
    return path


def read(path: Path) -> Any:
    return json.loads(path.read_text("utf-8"))


def data(done: Any) -> Any:
    answer = json.loads(done.out)
    assert (done.code, answer["ok"]) == (0, True)
    return answer["data"]


def files_in(directory: Path) -> dict[Path, bytes]:
    """But for locks, which are left where they are."""
    return {path: path.read_bytes() for path in directory.rglob("*") if path.is_file() and "locks" not in path.parts}


# -- what is said


def test_a_profile_is_set_shown_and_listed(amux: Amux, config: Path) -> None:
    path = config / "profiles" / "fast.json"
    done = amux("profiles", "set", "fast", "model=4.5", "timeout=60", "retryPolicy.maxAttempts=3", 'tags=["a","b"]')
    assert done == (0, "", f"saved fast in {path}\n")
    assert read(path) == {
        "model": "4.5", "timeout": "60s", "retryPolicy": {"maxAttempts": 3}, "tags": ["a", "b"],
    }  # fmt: skip
    shown = amux("profiles", "show", "fast")
    assert (shown.code, shown.err) == (0, "")
    rows = [line.split() for line in shown.out.splitlines() if line.strip()]
    assert [row for row in rows if len(row) == 3] == [
        ["key", "value", "from"], ["model", "4.5", "global"], ["timeout", "60s", "global"],
        ["retryPolicy.maxAttempts", "3", "global"], ["tags", '["a","b"]', "global"],
    ]  # fmt: skip
    assert 'retryPolicy.maxAttempts=3, tags=["a","b"]' in amux("profiles", "list").out
    assert data(amux("profiles", "show", "fast", "--json")) == {
        "name": "fast", "fields": read(path) | {"timeout": 60000}, "paths": {"global": str(path)},
        "sources": dict.fromkeys(("model", "timeout", "retryPolicy.maxAttempts", "tags"), "global"),
    }  # fmt: skip
    assert [one["name"] for one in data(amux("profiles", "list", "--json"))] == ["fast"]


def test_an_empty_value_removes_a_key(amux: Amux, config: Path) -> None:
    amux("profiles", "set", "fast", "model=m", "maxModelCalls=3", "retryPolicy.jitter=0.5")
    amux("profiles", "set", "fast", "maxModelCalls=", "retryPolicy.jitter=")
    assert read(config / "profiles" / "fast.json") == {"model": "m"}


def test_a_whole_profile_comes_from_a_file_or_standard_input(amux: Amux, config: Path, tmp_path: Path) -> None:
    amux("profiles", "set", "fast", "model=m")
    given = write(tmp_path / "given.json", {"maxModelCalls": 3, "outputSchema": {"type": "object"}})
    assert amux("profiles", "set", "fast", "--file", given).code == 0
    assert read(config / "profiles" / "fast.json") == read(given)
    assert amux("profiles", "set", "fast", "-f", "-", stdin=b'{"topK": 1}').code == 0
    assert read(config / "profiles" / "fast.json") == {"topK": 1}


def test_in_a_project_the_projects_profile_changes(amux: Amux, config: Path, project: Path) -> None:
    assert data(amux("profiles", "set", "fast", "model=p", "--json")) == {
        "profile": "fast", "scope": "project", "path": str(project / "profiles" / "fast.json"),
    }  # fmt: skip
    amux("profiles", "set", "fast", "model=g", "maxModelCalls=3", "--scope", "global")
    assert (read(project / "profiles" / "fast.json"), read(config / "profiles" / "fast.json")) == (
        {"model": "p"},
        {"model": "g", "maxModelCalls": 3},
    )
    shown = data(amux("profiles", "show", "fast", "--json"))
    assert (shown["fields"], shown["sources"]) == (
        {"model": "p", "maxModelCalls": 3},
        {"model": "project", "maxModelCalls": "global"},
    )
    assert "project, global" in amux("profiles", "list").out
    mode = stat.S_IMODE((project / "profiles" / "fast.json").stat().st_mode)
    assert mode & 0o044  # it is shared with the project


def test_a_project_can_be_named_before_and_behind_the_command(amux: Amux, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere" / ".agent-mux"
    elsewhere.mkdir(parents=True)
    assert amux("--project-dir", elsewhere, "profiles", "set", "one", "model=m").code == 0
    assert amux("profiles", "set", "two", "model=m", "--project-dir", elsewhere.parent).code == 0
    assert sorted(path.name for path in (elsewhere / "profiles").iterdir()) == ["one.json", "two.json"]
    assert data(amux("profiles", "list", "--json")) == []


def test_a_damaged_profile_hides_no_other(amux: Amux, config: Path) -> None:
    amux("profiles", "set", "good", "model=m")
    path = write(config / "profiles" / "bad.json", "{")
    listed = {one["name"]: one for one in data(amux("profiles", "list", "--json"))}
    assert set(listed) == {"bad", "good"}
    assert str(path) in listed["bad"]["problem"]
    assert "is not JSON: line 1" in " ".join(amux("profiles", "list").out.split())


def test_secrets_of_servers_are_not_shown(amux: Amux, config: Path) -> None:
    secret = "hunter2" * 4
    server = {"name": "x", "command": "y", "args": ["--token", secret], "env": {"A": secret}}
    remote = {"name": "z", "transport": "sse", "url": f"https://u:{secret}@h/", "headers": {"Authorization": secret}}
    write(config / "profiles" / "fast.json", {"mcpServers": [server, remote]})
    for arguments in (["show", "fast"], ["list"]):
        for form in ([], ["--json"]):
            assert secret not in amux("profiles", *arguments, *form).out


def test_profile_values_are_sanitized_for_the_terminal(amux: Amux, project: Path) -> None:
    write(project / "profiles" / "x.json", {"model": "\u001b[2Jm", "outputSchema": {"\u001b]0;t\u0007": 1}})
    for arguments in (["show", "x"], ["list"]):
        assert "\x1b" not in amux("profiles", *arguments).out


def test_the_default_profile_of_a_project_and_of_all(amux: Amux, config: Path, project: Path) -> None:
    amux("profiles", "set", "fast", "model=m", "--scope", "global")
    done = amux("profiles", "use", "fast")
    assert done == (0, "", f"runs in {project.parent} use the profile fast ({project / 'config.json'})\n")
    assert read(project / "config.json") == {"profile": "fast"}
    done = amux("profiles", "use", "fast", "--scope", "global")
    assert done == (0, "", f"runs everywhere use the profile fast ({config / 'config.json'})\n")
    assert amux("profiles", "use", "--none").code == 0
    assert (read(project / "config.json"), read(config / "config.json")) == ({}, {"profile": "fast"})


def test_a_profile_is_removed(amux: Amux, config: Path, project: Path) -> None:
    amux("profiles", "set", "fast", "model=p")
    amux("profiles", "use", "fast")
    done = amux("profiles", "delete", "fast")
    assert (done.code, done.out) == (0, "")
    warning, said = done.err.splitlines()
    assert warning.startswith(f"warning: {project / 'config.json'} still refers to fast; `amux profiles use --none`")
    assert said == f"deleted {project / 'profiles' / 'fast.json'}"
    amux("profiles", "set", "both", "model=p")
    amux("profiles", "set", "both", "model=g", "--scope", "global")
    assert amux("profiles", "delete", "both", "--scope", "global").code == 0
    assert not (config / "profiles" / "both.json").exists()
    assert amux("profiles", "delete", "both").code == 0


def test_reading_profiles_creates_no_files(amux: Amux, config: Path, repo: Path) -> None:
    for arguments in (["list"], ["show", "x"], ["delete", "x"]):
        amux("profiles", *arguments)
    assert (config.exists(), list(repo.iterdir())) == (False, [])


# -- what cannot be


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        (["list", "extra"], 2, "extra"),
        (["list", "--nope"], 2, "--nope"),
        (["list", "--tag", "x"], 2, "--tag"),
        (["show"], 2, "NAME"),
        (["show", "fsat"], 9, "did you mean 'fast'?"),
        (["show", "../fast"], 2, "64 letters"),
        (["show", "bad"], 7, "bad.json is not JSON: line 2, column 1"),
        (["set", "fast"], 2, "KEY=VALUE"),
        (["set", "fast", "model"], 2, "expected KEY=VALUE, got 'model'"),
        (["set", "fast", "=x"], 2, "expected KEY=VALUE"),
        (["set", "fast", "modle=x"], 2, "did you mean 'model'?"),
        (["set", "fast", "modle="], 2, "did you mean 'model'?"),
        (["set", "fast", "timeout=-1"], 2, "timeout: got -1; allowed: a number >= 0, in milliseconds"),
        (["set", "fast", "timeout=1e999"], 2, "timeout: got '1e999'"),
        (["set", "fast", "maxModelCalls=many"], 2, "maxModelCalls: got 'many'; allowed: a whole number"),
        (["set", "fast", "prompt=x"], 2, "nothing in a settings file"),
        (["set", "fast", "env.A=x"], 2, "nothing in a settings file"),
        (["set", "fast", "model=a", "model=b"], 2, "given twice"),
        (["set", "fast", "retryPolicy.maxAtempts=1"], 2, "did you mean 'maxAttempts'?"),
        (["set", "a b", "model=x"], 2, "64 letters"),
        (["set", "fast", "model=\udcff"], 2, "what JSON can represent"),
        (["set", "fast", "model.x=y"], 2, "model: got {'x': 'y'}; allowed: a string"),
        (["set", "bad", "model=x"], 7, "bad.json is not JSON"),
        (["set", "fast", "model=x", "--scope", "project"], 2, "amux init"),
        (["set", "fast", "model=x", "--scope", "galaxy"], 2, "Invalid value for '--scope'"),
        (["set", "fast", "model=x", "--file", "missing"], 2, "give either KEY=VALUE"),
        (["set", "fast", "--file", "missing"], 2, "cannot read missing"),
        (["set", "fast", "--file", "bad"], 2, "bad is not JSON: line 2, column 1"),
        (["delete"], 2, "NAME"),
        (["delete", "fsat"], 9, "did you mean 'fast'?"),
        (["delete", "fast", "--scope", "project"], 9, "in the project directory"),
        (["delete", "a/b"], 2, "64 letters"),
        (["apply"], 2, "give a profile NAME, or --none"),
        (["apply", "fast", "--none"], 2, "give a profile NAME, or --none"),
        (["apply", "fsat", "--scope", "global"], 9, "did you mean 'fast'?"),
        (["apply", "fast"], 2, "amux init"),
        (["apply", "bad", "--scope", "global"], 7, "bad.json is not JSON"),
    ],
)
def test_invalid_input_prints_one_line_and_changes_nothing(
    amux: Amux, tmp_path: Path, config: Path, repo: Path, arguments: list[str], code: int, told: str
) -> None:
    write(config / "profiles" / "fast.json", {"model": "m"})
    write(config / "profiles" / "bad.json", "{\n")
    write(repo / "bad", "{\n")
    before = files_in(tmp_path)
    done = amux("profiles", *arguments)
    assert (done.code, done.out) == (code, "")
    assert ERROR.fullmatch(done.err), done.err
    assert told in done.err
    assert files_in(tmp_path) == before
    answer = json.loads(amux("profiles", *arguments, "--json").out)
    assert answer["ok"] is False


def test_deleting_a_profile_in_both_scopes_requires_a_scope(amux: Amux, config: Path, project: Path) -> None:
    for place in (config, project):
        write(place / "profiles" / "fast.json", {"model": "m"})
    done = amux("profiles", "delete", "fast")
    assert (done.code, ERROR.fullmatch(done.err) is not None) == (2, True)
    assert "choose one with --scope" in done.err
    assert amux("profiles", "list").out.count("fast") == 1


def test_a_configuration_that_cannot_be_used_stays_as_it_is(amux: Amux, config: Path, project: Path) -> None:
    write(config / "profiles" / "fast.json", {"model": "m"})
    path = write(project / "config.json", '{"timeout": }')
    done = amux("profiles", "use", "fast")
    assert (done.code, path.read_text()) == (7, '{"timeout": }')
    assert f"{path} is not JSON: line 1, column 13" in done.err


# -- a project begins


def test_a_project_is_made(amux: Amux, repo: Path) -> None:
    place = repo / ".agent-mux"
    done = amux("init", "--agent", "claude-code", "--model", "m")
    assert done == (0, "", "".join(f"created {place / name}\n" for name in ("config.json", "README.md", ".gitignore")))
    assert read(place / "config.json") == {"defaultAgent": "claude", "defaultModel": "m"}
    assert (place / ".gitignore").read_text() == "run-index.jsonl\n"
    assert "`defaultAgent`" in (place / "README.md").read_text()
    assert stat.S_IMODE((place / "config.json").stat().st_mode) & 0o044
    assert stat.S_IMODE(place.stat().st_mode) & 0o055


def test_the_page_of_a_project_names_existing_keys(amux: Amux, repo: Path) -> None:
    from agent_mux.settings.config import CONFIG_KEYS

    amux("init")
    page = (repo / ".agent-mux" / "README.md").read_text()
    rows = re.findall(r"^\| ((?:`\w+`(?:, )?)+) \| ", page, re.MULTILINE)
    named = {key.strip("`") for row in rows for key in row.split(", ")}
    assert named >= {"defaultAgent", "timeout", "runIndex"}
    assert named <= set(CONFIG_KEYS)


def test_init_dry_run_writes_nothing(amux: Amux, repo: Path) -> None:
    done = amux("init", "--dry-run")
    assert done.code == 0
    assert done.err.splitlines()[0] == f"would create {repo / '.agent-mux' / 'config.json'}"
    assert list(repo.iterdir()) == []
    assert data(amux("init", "--dry-run", "--json"))["dryRun"] is True


def test_init_keeps_existing_gitignore_entries(amux: Amux, project: Path) -> None:
    (project / ".gitignore").write_text("secret")
    assert f"extended {project / '.gitignore'}" in amux("init").err
    assert (project / ".gitignore").read_text() == "secret\nrun-index.jsonl\n"
    assert f"kept {project / '.gitignore'}" in amux("init", "--force").err
    assert (project / ".gitignore").read_text() == "secret\nrun-index.jsonl\n"


def test_init_accepts_a_project_directory(amux: Amux, tmp_path: Path) -> None:
    place = tmp_path / "there" / ".agent-mux"
    assert data(amux("init", "--json", "--project-dir", tmp_path / "there"))["directory"] == str(place)
    assert data(amux("--project-dir", place, "init", "--json", "--force"))["directory"] == str(place)


@pytest.mark.parametrize(
    ("arguments", "code", "told"),
    [
        ([], 2, "already contains config.json; --force"),
        (["--agent", "cluade"], 3, "did you mean 'claude'?"),
        (["extra"], 2, "extra"),
        (["--nope"], 2, "--nope"),
    ],
)
def test_an_invalid_project_directory_is_an_error(
    amux: Amux, project: Path, tmp_path: Path, arguments: list[str], code: int, told: str
) -> None:
    write(project / "config.json", {"timeout": 1})
    before = files_in(tmp_path)
    done = amux("init", *arguments)
    assert (done.code, done.out) == (code, "")
    assert ERROR.fullmatch(done.err), done.err
    assert told in done.err
    assert files_in(tmp_path) == before


def test_links_are_not_written_through(amux: Amux, project: Path, tmp_path: Path) -> None:
    (project / "config.json").symlink_to(tmp_path / "not-there")
    assert amux("init").code == 2
    assert not (tmp_path / "not-there").exists()


def test_neither_the_global_directory_nor_a_file_becomes_a_project(
    amux: Amux, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "home").mkdir()
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / ".agent-mux").touch()
    for place, told in (("home", "is the global directory"), ("other", "exists and is not a directory")):
        monkeypatch.chdir(tmp_path / place)
        done = amux("init")
        assert (done.code, told in done.err) == (2, True)


def test_an_unwritable_directory_is_an_error(amux: Amux, repo: Path, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = amux("init", "--project-dir", tmp_path / "file" / "below")
    assert (done.code, ERROR.fullmatch(done.err) is not None) == (7, True)


# -- a shell asks


def test_a_shell_completes_names_of_profiles(config: Path) -> None:
    for name in ("review", "retry", "fast"):
        write(config / "profiles" / f"{name}.json", {"model": "m"})
    for line in ("amux profiles show re", "amux run --profile re", "amux profiles use re"):
        assert [one.value for one in complete(line.split())] == ["retry", "review"]
