"""Registrations of the user and of a project, and trust in project files."""

import json
import stat
from pathlib import Path
from typing import Any

import pytest

from agent_mux import AgentMuxError
from agent_mux.agents.hooks.client import Hooks

LOG: dict[str, Any] = {"handler": "builtin", "target": "log"}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "project" / ".agent-mux").mkdir(parents=True)
    return tmp_path / "project"


@pytest.fixture
def hooks(project: Path) -> Hooks:
    return Hooks(directory=project)


def bring(project: Path, *registrations: dict[str, Any]) -> Path:
    """Write a `hooks.json` as if it came with the repository."""
    path = project / ".agent-mux" / "hooks.json"
    path.write_text(json.dumps({"hooks": list(registrations)}))
    return path


def ids(hooks: Hooks) -> list[str]:
    return [one.id for one in hooks.effective()]


def test_added_hooks_are_effective_in_order(hooks: Hooks, own: Path) -> None:
    path = hooks.add(id="late", priority=200, **LOG)
    hooks.add(id="b", **LOG)
    hooks.add(id="a", **LOG)
    hooks.add(id="early", priority=-1, **LOG)
    assert path == own / "hooks.json"
    assert ids(hooks) == ["early", "a", "b", "late"]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_alias_is_stored_as_agent_name(hooks: Hooks) -> None:
    hooks.add(id="a", agent="claude-code", **LOG)
    assert hooks.effective()[0].agent == "claude"


def test_project_overrides_by_id(hooks: Hooks) -> None:
    hooks.add(id="a", **LOG)
    hooks.add(id="b", **LOG)
    hooks.add("project", id="a", priority=300, **LOG)
    assert ids(hooks) == ["b", "a"]
    assert [(one.registration.id, one.scope, one.counts) for one in hooks.list()] == [
        ("a", "global", False), ("b", "global", True), ("a", "project", True),
    ]  # fmt: skip


def test_hooks_of_a_cloned_repository_are_not_effective(hooks: Hooks, project: Path) -> None:
    hooks.add(id="guard", **LOG)
    bring(project, {"id": "guard", "enabled": False, **LOG}, {"id": "evil", "handler": "command", "target": "evil"})
    assert ids(hooks) == ["guard"]
    assert [one.why_not for one in hooks.list() if one.scope == "project"] == [
        "the file is not trusted; read it, then `amux hooks trust`"
    ] * 2
    hooks.trust()
    assert ids(hooks) == ["evil", "guard"]


def test_trust_ends_when_the_file_changes(hooks: Hooks, project: Path) -> None:
    bring(project, {"id": "a", **LOG})
    hooks.trust()
    hooks.add("project", id="b", **LOG)  # our own change keeps the file trusted
    hooks.disable("a")
    assert ids(hooks) == ["a", "b"]
    path = bring(project, {"id": "c", **LOG})
    assert ids(hooks) == []
    with pytest.raises(AgentMuxError, match="not trusted") as caught:
        hooks.add("project", id="d", **LOG)
    assert caught.value.code == "VALIDATION_ERROR"
    assert json.loads(path.read_text())["hooks"][0]["id"] == "c"


def test_project_is_found_from_subdirectory(hooks: Hooks, project: Path) -> None:
    hooks.add("project", id="a", **LOG)
    (project / "deep" / "er").mkdir(parents=True)
    assert ids(Hooks(directory=project / "deep" / "er")) == ["a"]


def test_add_creates_the_project_directory(tmp_path: Path) -> None:
    (tmp_path / "fresh").mkdir()
    path = Hooks(directory=tmp_path / "fresh").add("project", id="a", **LOG)
    assert path == tmp_path / "fresh" / ".agent-mux" / "hooks.json"
    assert ids(Hooks(directory=tmp_path / "fresh")) == ["a"]


def test_enable_disable_remove_preserve_the_rest(hooks: Hooks, own: Path) -> None:
    hooks.add(id="a", **LOG)
    path = own / "hooks.json"
    path.write_text(path.read_text().replace('{\n  "hooks"', '{\n  // mine\n  "hooks"'))
    before = path.read_text()
    hooks.add(id="b", **LOG)
    hooks.disable("b")
    assert [one.enabled for one in hooks.effective()] == [True, False]
    hooks.enable("b")
    assert [one.enabled for one in hooks.effective()] == [True, True]
    hooks.remove("b")
    assert path.read_text() == before
    hooks.remove("a")
    assert ids(hooks) == []
    hooks.add(id="c", **LOG)
    assert ids(hooks) == ["c"]


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"id": "a", **LOG}, "already contains a hook 'a'"),
        ({"id": "b", "handler": "builtin", "target": "lgo"}, "did you mean 'log'?"),
        ({"id": "b", "hook_type": "stopp", **LOG}, "did you mean 'stop'?"),
        ({"id": "b", "handler": "command", "target": "/nowhere/it"}, "/nowhere/it is neither a program"),
        ({"id": "b", "handler": "script", "target": "/nowhere/it.py"}, "/nowhere/it.py does not exist"),
        ({"id": "b", "handler": "builtin", "target": "policy:/nowhere/it.toml"}, "/nowhere/it.toml"),
        ({"id": "b", "agent": "clade", **LOG}, "did you mean 'claude'?"),
        ({"id": " ", **LOG}, "the new hook.id"),
    ],
)
def test_uncallable_handler_is_not_registered(hooks: Hooks, own: Path, fields: dict[str, Any], message: str) -> None:
    hooks.add(id="a", **LOG)
    before = (own / "hooks.json").read_bytes()
    with pytest.raises(AgentMuxError) as caught:
        hooks.add(**fields)
    assert message in str(caught.value)
    assert "cannot be used" not in str(caught.value) or "policy" in str(caught.value)
    assert (own / "hooks.json").read_bytes() == before


def test_unknown_id_is_rejected(hooks: Hooks) -> None:
    hooks.add(id="guard", **LOG)
    with pytest.raises(AgentMuxError, match="did you mean 'guard'"):
        hooks.remove("gard")
    with pytest.raises(AgentMuxError, match="hooks list"):
        hooks.enable("x", "project")


def test_trust_without_file_is_rejected(tmp_path: Path) -> None:
    with pytest.raises(AgentMuxError, match=r"no hooks\.json in this project"):
        Hooks(directory=tmp_path).trust()


def test_invalid_file_is_not_replaced(hooks: Hooks, own: Path) -> None:
    (own / "hooks.json").write_text('{"hooks": [')
    for change in (lambda: hooks.add(id="a", **LOG), lambda: hooks.remove("a"), hooks.list, hooks.effective):
        with pytest.raises(AgentMuxError) as caught:
            change()
        assert caught.value.code == "CONFIG_ERROR"
    assert (own / "hooks.json").read_text() == '{"hooks": ['


def test_invalid_trust_file_is_reported(hooks: Hooks, own: Path, project: Path) -> None:
    bring(project, {"id": "a", **LOG})
    (own / "trusted-hooks.json").write_text("{")
    with pytest.raises(AgentMuxError, match="trust your projects again"):
        hooks.effective()


def test_set_changes_only_the_given_fields(hooks: Hooks, own: Path) -> None:
    hooks.add(id="a", agent="claude", **LOG)
    hooks.set("a", priority=3, enabled=False)
    [one] = json.loads((own / "hooks.json").read_text())["hooks"]
    assert (one["priority"], one["enabled"], one["agent"]) == (3, False, "claude")
    assert [len(hooks.list(name)) for name in (None, "claude-code", "codex")] == [1, 1, 0]
    for fields, message in (({}, "at least one of"), ({"id": "b"}, "at least one of"), ({"target": "nope"}, "nope")):
        with pytest.raises(AgentMuxError, match=message) as caught:
            hooks.set("a", **fields)
        assert caught.value.code == "VALIDATION_ERROR"
    assert json.loads((own / "hooks.json").read_text())["hooks"] == [one]
