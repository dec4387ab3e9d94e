"""Bad input prints one line on standard error, nothing on standard output, and sets the right exit code."""

import json
import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.unit.cli import bad_inputs_around, bad_inputs_hooks, bad_inputs_runs
from tests.unit.cli.conftest import CLAUDE, Amux

from agent_mux.cli.app import command

WITHOUT_INPUT = {("version",), ("help",), ("adapters", "list")}
"""What takes no argument of its own, or answers anything."""
TRANSCRIPT = CLAUDE / "plain_text" / "stdout.jsonl"
Make = Callable[[Path], object]


def file(name: str, data: bytes) -> Make:
    def make(directory: Path) -> Path:
        path = directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return path

    return make


def missing(directory: Path) -> Path:
    return directory / "missing"


def folder(directory: Path) -> Path:
    (directory / "folder").mkdir(exist_ok=True)
    return directory / "folder"


def unreadable(directory: Path) -> Path:
    path = directory / "secret"
    path.write_bytes(b"{}")
    path.chmod(0)
    return path


def fixture_without(name: str, data: bytes | None = None) -> Make:
    """A fixture folder in which one file is missing or wrong."""

    def make(directory: Path) -> Path:
        copy = directory / "fixture"
        copy.mkdir(exist_ok=True)
        for path in (CLAUDE / "plain_text").iterdir():
            (copy / path.name).write_bytes(path.read_bytes())
        (copy / name).unlink()
        if data is not None:
            (copy / name).write_bytes(data)
        return copy

    return make


garbage = file("garbage", bytes(range(256)) * 50)
empty = file("empty", b"")
wrong_journal = file("wrong.journal", b"H 0 2\n{}\n")
newer_journal = file("newer.journal", b'H 0 48\n{"format":"agent-mux-journal","version":9999999}\n')
damaged_journal = file("damaged.journal", b"H 0 5\n{}{}{}{}{}{}")
some_dict = file("some.json", b'{"a": 1}')
some_list = file("list.json", b"[]")
cut_json = file("cut.json", b'{"a":\n  [1, 2')
deep_json = file("deep.json", b"[" * 100_000)
latin_json = file("latin.json", '{"ä": 1}'.encode("latin-1"))
bad_servers = file("servers.json", b'{"mcpServers": {"x": {"command": 5}}}')
odd_servers = file("odd.json", b'{"mcpServers": {"x": {"comand": "y"}}}')
servers_list = file("servers_list.json", b'{"mcpServers": []}')

CASES: list[tuple[list[object], int, str]] = [
    # stored sessions
    (["sessions", "list", "--since", "soon"], 2, "--since 'soon' is not a valid time; give a day"),
    (["sessions", "list", "--until", "2026-13-01"], 2, "--until '2026-13-01' is not a valid time"),
    (["sessions", "list", "--limit", "-1"], 2, "Invalid value for '--limit'"),
    (["sessions", "list", "--sort", "name"], 2, "Invalid value for '--sort'"),
    (["sessions", "list", "--dir", missing], 2, "--dir needs --agent"),
    (["sessions", "list", "-a", "claude", "--dir", missing], 2, "--dir .*missing is not a directory"),
    (["sessions", "list", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "list", "-a", "replay"], 6, "replay does not support stored sessions"),
    (["sessions", "show"], 2, "Missing argument 'SESSION'"),
    (["sessions", "show", "nothing"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "show", "claude:../../x", "--events"], 8, "no stored session has the id"),
    (["sessions", "search", " "], 2, "search text is empty"),
    (["sessions", "search"], 2, "Missing argument 'TEXT'"),
    (["sessions", "search", "x", "--since", "x"], 2, "--since 'x' is not a valid time"),
    (["sessions", "export", "nothing"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "export", "x", "--format", "pdf"], 2, "Invalid value for '--format'"),
    (["sessions", "export"], 2, "Missing argument 'SESSION'"),
    (["sessions", "diff", "nothing"], 2, "Missing argument 'SECOND'"),
    (["sessions", "diff", "nothing", "nothing"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "diff"], 2, "Missing argument"),
    (["sessions", "watch"], 8, "no stored session matches; list them"),
    (["sessions", "list", "--order", "up"], 2, "Invalid value for '--order'"),
    (["sessions", "watch", "nothing"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "watch", "x", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "tag"], 2, "Missing argument 'SESSION'"),
    (["sessions", "tag", "nothing", "x"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "tag", "x", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "checkpoints"], 2, "Missing argument 'SESSION'"),
    (["sessions", "checkpoints", "nothing"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "checkpoints", "x", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "rewind", "x"], 2, "Missing argument 'CHECKPOINT'"),
    (["sessions", "rewind", "nothing", "x", "--yes"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "rewind", "x", "y", "--files", "--conversation"], 2, "cannot be combined with --conversation"),
    (["sessions", "rename", "x"], 2, "Missing argument 'TITLE'"),
    (["sessions", "rename", "nothing", "x"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "rename", "x", "y", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "delete"], 2, "Missing argument 'SESSION'"),
    (["sessions", "delete", "nothing", "--yes"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "delete", "x", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["sessions", "names", "--agent", "clade"], 3, "did you mean 'claude'"),
    (["sessions", "names", "--cwd", "nowhere"], 2, "nowhere is not a directory"),
    (["sessions", "names", "extra"], 2, "unexpected extra argument"),
    (["run", "claude", "hi", "-s", "a b"], 2, "session_name: got 'a b'"),
    (["run", "claude", "hi", "-s", "a", "--session", "b"], 2, "at most one of session_id, fork"),
    (["run", "cursor", "hi", "-s", "a", "--yolo"], 4, "cursor is not installed"),
    (["run", "replay", "hi", "-s", "a"], 6, "replay does not support resuming a session, which a session name needs"),
    (["sessions", "resume"], 2, "Missing argument 'SESSION'"),
    (["sessions", "resume", "nothing", "go on"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "resume", "x", "go on", "--session", "y"], 2, "--no-session cannot be used here"),
    (["sessions", "fork", "nothing", "go on"], 8, "no stored session has the id 'nothing'"),
    (["sessions", "fork", "x", "go on", "--no-session"], 2, "--no-session cannot be used here"),
    (["sessions", "fork", "x", "go on", "-a", "nobody"], 3, "no agent is named 'nobody'"),
    (["quota", "nobody"], 3, "no agent is named 'nobody'"),
    (["quota", "claude", "codex"], 2, "unexpected extra argument"),
    (["quota", "--server", "localhost"], 2, "url: got 'localhost'"),
    (["run", "claude", "hi", "--wait-for-quota", "soon"], 2, "--wait-for-quota 'soon' is not a duration"),
    (["run", "claude", "hi", "--fallback", ":x"], 2, r"fallback\[0\]: got ':x'; allowed: AGENT or AGENT:MODEL"),
    (["run", "replay", "demo", "--fallback", "clade"], 3, "did you mean 'claude'"),
    (["cost", "report", "--by", "colour"], 2, "Invalid value for '--by'"),
    (["cost", "report", "--dir", missing], 2, "--dir needs --agent"),
    (["cost", "report", "--since", "soon"], 2, "--since 'soon' is not a valid time"),
    # what there is no file to read from
    (["parse", "-a", "claude", missing], 2, "cannot read .*missing: No such file"),
    (["parse", "-a", "claude", folder], 2, "cannot read .*folder: Is a directory"),
    (["parse", "-a", "claude", "a\0b"], 2, "cannot read .*null (byte|character)"),
    (["validate", missing], 2, "cannot read .*missing: No such file"),
    (["validate", folder], 2, "cannot read .*folder: Is a directory"),
    (["replay", missing], 2, "cannot read .*missing: No such file"),
    (["replay", "a\0b"], 2, "null (byte|character)"),
    (["replay", "01HZZZZZZZZZZZZZZZZZZZZZZZ"], 2, "cannot read 01HZ.*No such file|cannot read .*journal: No such file"),
    # what is not what it should be
    (["parse", "-a", "claude", garbage], 1, "no line of this transcript is in a protocol of Claude Code"),
    (["parse", "-a", "codex", TRANSCRIPT], 1, "no line of this transcript is in a protocol of Codex CLI"),
    (["parse", "-a", "claude", "--protocol", "morse", TRANSCRIPT], 2, "claude has no protocol 'morse'; it has"),
    (["parse", "-a", "clade", TRANSCRIPT], 3, "did you mean 'claude'"),
    (["parse", TRANSCRIPT], 2, "which agent wrote this transcript"),
    (["parse", wrong_journal], 1, "cannot be read as a journal"),
    (["parse", newer_journal], 1, "cannot be read as a journal"),
    (["validate", garbage], 1, "not an event stream"),
    (["validate", some_list], 1, "not an event stream"),
    (["validate", deep_json], 1, "not an event stream"),
    (["replay", garbage], 1, "is damaged at byte 0|is not a journal"),
    (["replay", empty], 1, "is not a journal"),
    (["replay", some_dict], 1, "is not a journal|is damaged"),
    (["replay", wrong_journal], 1, "cannot be read as a journal"),
    (["replay", damaged_journal], 1, "is damaged at byte 0"),
    (["replay", folder], 2, "not a fixture folder: run.toml is missing"),
    (["replay", fixture_without("stdout.jsonl")], 2, "stdout.jsonl is missing"),
    (["replay", fixture_without("exit.json", b"{")], 2, "not a fixture folder"),
    (["replay", fixture_without("exit.json", b"{}")], 2, "'code' is missing"),
    (["replay", fixture_without("times.json", b"5")], 2, "not a fixture folder"),
    (["replay", fixture_without("run.toml", b"agent = \n")], 2, "not a fixture folder: .*line 1"),
    (["replay", fixture_without("run.toml", b"agent = 'claude'\n")], 2, "'version' is missing"),
    (["replay", fixture_without("run.toml", b"\xff\xfe")], 2, "not a fixture folder"),
    (["replay", "--speed", "-1", TRANSCRIPT], 2, "--speed"),
    (["replay", "--speed", "fast", TRANSCRIPT], 2, "--speed"),
    # usage
    (["rnu"], 2, "No such command 'rnu'. Did you mean 'run'"),
    (["xyzzy"], 2, "No such command 'xyzzy'"),
    (["adapters", "lst"], 2, "Did you mean 'list'"),
    (["--no-such-flag"], 2, "--no-such-flag"),
    (["run", "claude", "hi", "--no-such-flag"], 2, "--no-such-flag"),
    (["schema", "evnt"], 2, "evnt"),
    (["replay"], 2, "PATH"),
    (["record", "claude", "hi"], 2, "--to"),
    (["help", "rnu"], 2, "Did you mean 'run'"),
    # runs that cannot start
    (["run"], 2, "agent is missing"),
    (["run", "claude", "a", "b"], 2, "expected one prompt, got 2 words; quote it"),
    (["run", "claude", "a", "-p", "b"], 2, "not both"),
    (["run", "clade", "hi"], 3, "did you mean 'claude'"),
    (["run", "", "hi"], 2, "agent is missing"),
    (["run", "claude", ""], 2, "prompt: got ''"),
    (["run", "claude", "a\0b"], 2, "NUL"),
    (["run", "claude", "hi", "--yolo", "--deny"], 2, "cannot be combined with"),
    (["run", "claude", "hi", "--journal", "j", "--no-journal"], 2, "cannot be combined with"),
    (["run", "claude", "hi", "--temperature", "9"], 2, "temperature: got 9.0; allowed: a number from 0 to 2"),
    (["run", "claude", "hi", "--yolo", "--plan"], 2, "--yolo cannot be combined with --plan"),
    (["run", "claude", "hi", "--native-option", "x"], 2, "--native-option expects KEY=VALUE"),
    (["run", "claude", "hi", "--native-option", "x=1", "--native-option=x=2"], 2, "--native-option x is given twice"),
    (["run", "claude", "hi", "--add-dir", "no-such-directory"], 2, r"add_dirs\[0\]: got"),
    (["run", "claude", "hi", "--temperature", "warm"], 2, "--temperature"),
    (["run", "claude", "hi", "--temperature", "nan"], 2, "temperature: got nan"),
    (["run", "claude", "hi", "--timeout", "-1"], 2, "timeout: got -1.0"),
    (["run", "claude", "hi", "--max-model-calls", "0"], 2, "max_model_calls: got 0"),
    (["run", "claude", "hi", "--max-turns", "0"], 2, "max_model_calls: got 0"),
    (["run", "claude", "hi", "--thinking-effort", "huge"], 2, "thinking_effort: got 'huge'; allowed"),
    (["run", "claude", "hi", "--system-mode", "shout"], 2, "system_prompt_mode"),
    (["run", "claude", "hi", "--session", "a", "--fork", "b"], 2, "session_id, fork_session_id"),
    (["run", "claude", "hi", "--run-id", "x"], 2, "run_id"),
    (["run", "claude", "hi", "--cwd", missing], 2, "cwd: got '.*missing'"),
    (["run", "claude", "hi", "--isolation", "jail"], 2, "isolation: got 'jail'; allowed: none, worktree"),
    (["run", "claude", "hi", "--env", "KEY"], 2, "--env expects NAME=VALUE"),
    (["run", "claude", "hi", "--env", "1 2=x"], 2, "names of letters"),
    (["run", "claude", "hi", "--attach", missing], 2, "existing file"),
    (["run", "claude", "hi", "--output-schema", missing], 2, "cannot read .*missing"),
    (["run", "claude", "hi", "--output-schema", folder], 2, "Is a directory"),
    (["run", "claude", "hi", "--output-schema", cut_json], 2, "cut.json is not JSON: line 2, column"),
    (["run", "claude", "hi", "--output-schema", some_list], 2, "does not contain a JSON object"),
    (["run", "claude", "hi", "--output-schema", deep_json], 2, "is not JSON"),
    (["run", "claude", "hi", "--output-schema", latin_json], 2, "is not JSON"),
    (["run", "claude", "hi", "--output-schema", garbage], 2, "is not JSON"),
    (["run", "claude", "hi", "--mcp-server", "nothing"], 2, "--mcp-server expects"),
    (["run", "claude", "hi", "--mcp-server", "x="], 2, "--mcp-server expects"),
    (["run", "claude", "hi", "--mcp-server", "x='open"], 2, "No closing quotation"),
    (["run", "claude", "hi", "--mcp-server", "x y=true"], 2, r"mcp_servers\[0\].name"),
    (["run", "claude", "hi", "--mcp-server", ["@", missing]], 2, "cannot read"),
    (["run", "claude", "hi", "--mcp-server", ["@", bad_servers]], 2, "field of the wrong type"),
    (["run", "claude", "hi", "--mcp-server", ["@", odd_servers]], 2, "must be an object with the fields args, command"),
    (["run", "claude", "hi", "--mcp-server", ["@", servers_list]], 2, "mcpServers is not an object"),
    (["run", "claude", "hi", "--mcp-server", ["@", some_dict]], 2, "must be an object with"),
    (["run", "claude", "\udcff"], 2, "is not UTF-8"),
    (["run", "claude", "hi", "--tag", "a", "--tag", "\udcff"], 2, "is not UTF-8"),
    (["run", "claude", "hi", "--cwd", "/\udcff"], 2, "is not UTF-8"),
    (["compare", "--nope"], 2, "nope"),
    (["compare", "hi"], 2, "no candidate is given; add --with"),
    (["compare", "--with", "null"], 2, "no task is given"),
    (["compare", "start", "hi", "--with", "claude,modle=x"], 2, "did you mean 'model'"),
    (["compare", "start", "hi", "--with", "null", "--with", "null"], 2, "AGENT,name=NAME"),
    (["compare", "start", "hi", "--with", "null", "--trials", "0"], 2, "trials: got 0"),
    (["compare", "hi", "--with", "null", "--check", "'open"], 2, "--check"),
    (["compare", "hi", "--with", "null", "--task", missing], 7, "missing cannot be read"),
    (["compare", "hi", "--with", "null", "--cwd", missing], 2, "cwd: got '.*missing'"),
    (["compare", "hi", "--with", "null", "--env", "other:A=1"], 2, "allowed: NAME; no candidate is an agent"),
    (["compare", "hi", "--with", "null", "--confine", "jail"], 2, "confine: got 'jail'; allowed: auto, off"),
    (["compare", "hi", "--with", "null", "--env", "KEY"], 2, "--env expects NAME=VALUE"),
    (["compare", "hi", "--with", "nosuch"], 3, "candidate nosuch"),
    (["compare", "watch"], 2, "amux compare watch needs --server URL"),
    (["compare", "watch", "a", "b"], 2, "unexpected"),
    (["compare", "watch", "--server", "nonsense"], 2, "nonsense"),
    (["compare", "stop"], 2, "Missing argument"),
    (["compare", "stop", "a"], 2, "amux compare stop needs --server URL"),
    (["compare", "stop", "a", "--server", "nonsense"], 2, "nonsense"),
    (["compare", "resume", "--set", "timeout"], 2, "--set expects NAME=VALUE"),
    (["compare", "resume", "--env", "KEY"], 2, "--env expects NAME=VALUE"),
    (["compare", "resume"], 2, "no comparison is stored"),
    (["compare", "resume", "nosuch"], 2, "no comparison 'nosuch'"),
    (["compare", "list", "x"], 2, "unexpected"),
    (["compare", "list", "--nope"], 2, "nope"),
    (["compare", "list", "--config-dir"], 2, "argument"),
    (["compare", "show"], 2, "no comparison is stored"),
    (["compare", "show", "nosuch"], 2, "no comparison 'nosuch'"),
    (["compare", "show", "a", "b"], 2, "unexpected"),
    (["compare", "diff"], 2, "Missing argument"),
    (["compare", "diff", "a-1"], 20, "no comparison is stored"),
    (["compare", "diff", "a", "b", "c"], 2, "unexpected"),
    (["compare", "apply"], 2, "Missing argument"),
    (["compare", "apply", "a-1"], 20, "no comparison is stored"),
    (["compare", "apply", "a-1", "--in", "nosuch"], 20, "no comparison 'nosuch'"),
    (["compare", "export"], 20, "no comparison is stored"),
    (["compare", "export", "nosuch"], 20, "no comparison 'nosuch'"),
    (["compare", "export", "a", "b"], 2, "unexpected"),
    (["compare", "delete"], 2, "Missing argument"),
    (["compare", "delete", "nosuch"], 20, "no comparison is stored|no comparison 'nosuch'"),
    (["compare", "delete", "--nope"], 2, "nope"),
    (["record", "claude", "hi", "--to", some_dict], 2, "is not a folder"),
    (["record", "claude", "hi", "--to", fixture_without("exit.json")], 2, "is not empty; --force"),
    (["record", "claude", "hi", "--to", missing, "--no-journal"], 2, "--no-journal cannot be used here"),
    (["run", "claude", "hi"], 4, "claude is not installed .*; try: npm install"),
    (["run", "replay", missing], 2, "does not exist"),
    # our own files
    (["init", "extra"], 2, "extra"),
    (["init", "--agent", "cluade", "--project-dir", missing], 3, "did you mean 'claude'"),
    (["init", "--project-dir", [some_dict, "/below"]], 7, "cannot (read|write) .*: Not a directory"),
    (["profiles", "list", "extra"], 2, "extra"),
    (["profiles", "list", "--agent", "claude"], 2, "--agent"),
    (["profiles", "list", "--project-dir"], 2, "--project-dir"),
    (["profiles", "show"], 2, "Missing argument 'NAME'"),
    (["profiles", "show", "fast"], 9, "no profile is named 'fast'; known: none"),
    (["profiles", "show", "../fast"], 2, "1 to 64 letters"),
    (["profiles", "set", "fast"], 2, "give either KEY=VALUE"),
    (["profiles", "set", "fast", "modle=m"], 2, "modle: got 'm'; .*did you mean 'model'"),
    (["profiles", "set", "fast", "timeout=soon"], 2, "timeout: got 'soon'; allowed: a duration with a unit"),
    (["profiles", "set", "fast", "--file", cut_json], 2, "cut.json is not JSON: line 2"),
    (["profiles", "set", "a b", "model=m"], 2, "1 to 64 letters"),
    (["profiles", "delete"], 2, "Missing argument 'NAME'"),
    (["profiles", "delete", "fast"], 9, "no profile is named 'fast'"),
    (["profiles", "delete", "fast", "--scope", "galaxy"], 2, "Invalid value for '--scope'"),
    (["profiles", "use"], 2, "give a profile NAME, or --none"),
    (["profiles", "use", "fast", "--none"], 2, "give a profile NAME, or --none"),
    (["profiles", "use", "fast", "--scope", "global"], 9, "no profile is named 'fast'"),
    (["--server", "http://localhost:1", "run", "replay", "demo"], 1, "cannot be reached"),
    (["run", "--server", "localhost", "replay", "demo"], 2, "url: got 'localhost'"),
    (["run", "--server", "http://me:pw@localhost", "replay", "demo"], 2, "no name and password"),
    (["run", "--server", "http://localhost:1", "replay", "demo", "--no-journal"], 2, "--no-journal refers to this"),
    (["run", "--server", "http://localhost:1", "--server-token-file", missing, "replay", "demo"], 2, "cannot read"),
    (["run", "--server-token-file", missing, "replay", "demo"], 2, "requires --server"),
    (["--server", "http://localhost:1", "sessions", "watch", "x"], 2, "`amux sessions watch` works on this machine"),
    (["--server", "http://localhost:1", "models", "refresh"], 2, "`amux models refresh` works on this machine only"),
    (["--server", "http://localhost:1", "config", "get", "claude"], 2, "`amux config` works on this machine only"),
    (["--server", "http://localhost:1", "sessions", "list"], 1, "cannot be reached"),
    (["sessions", "search", "x", "--server", "http://localhost:1"], 1, "cannot be reached"),
    (["cost", "report", "--server", "localhost"], 2, "url: got 'localhost'"),
    (["cost", "report", "--server-token-file", missing], 2, "requires --server"),
    (["models", "list", "--server", "http://localhost:1", "--server-token-file", missing], 2, "cannot read"),
    (["profiles", "show", "x", "--server", "http://localhost:1", "--config-dir", "."], 2, "--config-dir refers"),
    (["sessions", "show", "x", "-a", "pi", "--dir", ".", "--server", "http://localhost:1"], 2, "--dir refers to this"),
    (["adapters", "detect", "--server", "http://localhost:1"], 1, "cannot be reached"),
    (["record", "--server", "http://localhost:1", "replay", "demo", "--to", missing], 2, "`amux record` works on"),
    (["sessions", "resume", "x", "hi", "--server", "http://localhost:1"], 2, "--session ID --server URL`"),
    (["--server", "http://localhost:1", "sessions", "fork", "x", "hi"], 2, "use `amux run AGENT PROMPT --fork ID"),
    (["sessions", "tag", "x", "--server", "http://localhost:1"], 2, "`amux sessions tag` works on this machine only"),
    (["runs", "list", "--server", ""], 2, "--server is empty"),
    (["runs", "text", "--offset", "-1"], 2, "--offset"),
    (["runs", "text", "--limit", "few"], 2, "--limit"),
    (["runs", "text", "nothing"], 1, "no run has an id that begins with 'nothing'"),
    (["--server", " ", "run", "replay", "demo"], 2, "--server is empty"),
    (["run", "--server", "http://localhost:99999", "replay", "demo"], 2, "url: got 'http://localhost:99999'"),
    (["run", "claude", "hi", "--profile", "fast"], 9, "no profile is named 'fast'"),
    (["run", "claude", "hi", "--profile", "a b"], 2, "profile: got 'a b'"),
    *bad_inputs_around.CASES,
    *bad_inputs_hooks.CASES,
    *bad_inputs_runs.CASES,
]  # fmt: skip


def built(argument: object, directory: Path) -> str:
    if isinstance(argument, list):
        return "".join(built(part, directory) for part in argument)
    return str(argument(directory)) if callable(argument) else str(argument)


def name_of(case: object) -> str:
    parts = case if isinstance(case, list) else [case]
    text = " ".join(getattr(part, "__name__", str(part))[:30] for part in parts)
    return text.replace("\0", "NUL").replace("\udcff", "BYTE")


@pytest.fixture(autouse=True)
def _nothing_is_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    for name in [name for name in os.environ if name.startswith("AMUX_")]:
        monkeypatch.delenv(name)


@pytest.mark.parametrize(("arguments", "code", "message"), CASES, ids=[name_of(case[0]) for case in CASES])
def test_bad_input_prints_one_line_on_standard_error(
    amux: Amux, tmp_path: Path, arguments: list[object], code: int, message: str
) -> None:
    given = [built(argument, tmp_path) for argument in arguments]
    done = amux(*given)
    said, *hint = done.err.splitlines()
    assert said.startswith("error: ")
    assert said.endswith("]")
    assert done.code == code
    assert done.out == ""
    assert len(hint) <= 1
    assert all(line.startswith("hint: ") for line in hint)
    assert re.search(message, said), said
    written = {str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")}
    assert written.isdisjoint({"home", "config"}), "nothing is written for bad input"


def commands(group: Any, *way: str) -> Iterator[tuple[str, ...]]:
    """Every command that there is, as its words."""
    for name, inner in group.commands.items():
        if hasattr(inner, "commands"):
            yield from commands(inner, *way, name)
        else:
            yield (*way, name)


def test_every_command_has_three_bad_inputs() -> None:
    given = [[str(word) for word in arguments] for arguments, _, _ in CASES]
    count = {
        way: sum(arguments[: len(way)] == list(way) for arguments in given)
        for way in commands(command())
        if way not in WITHOUT_INPUT
    }
    assert {way: found for way, found in count.items() if found < 3} == {}


@pytest.mark.parametrize(("arguments", "code", "message"), CASES, ids=[name_of(case[0]) for case in CASES])
def test_bad_input_with_json_prints_an_error_object(
    amux: Amux, tmp_path: Path, arguments: list[object], code: int, message: str
) -> None:
    done = amux("--json", *[built(argument, tmp_path) for argument in arguments])
    assert (done.code, done.err) == (code, "")
    told = json.loads(done.out)
    assert set(told) == {"ok", "error"}
    assert told["ok"] is False
    assert set(told["error"]) == {"code", "message", "recoverable"}


def test_an_unreadable_file_is_reported(amux: Amux, tmp_path: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    done = amux("validate", unreadable(tmp_path))
    assert (done.code, done.out) == (2, "")
    assert "Permission denied" in done.err


def test_two_output_formats_cannot_be_combined(amux: Amux) -> None:
    done = amux("run", "claude", "hi", "--json", "--quiet")
    assert done.code == 2
    assert "cannot be combined with" in done.out


def test_a_secret_in_the_arguments_is_not_repeated(amux: Amux) -> None:
    assert "sk-12345" not in amux("run", "claude", "hi", "--env", "sk-12345").err
    assert "sk-12345" not in amux("run", "claude", "hi", "--env", "A=sk-12345\0").err


def test_an_unexpected_error_prints_one_line_and_a_traceback_with_debug(
    amux: Amux, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> None:
        raise ExceptionGroup("tasks", [RuntimeError("of all things\nand more")])

    monkeypatch.setattr("agent_mux.cli.inputs.read_bytes", fail)
    done = amux("validate", "x")
    assert (done.code, done.out) == (1, "")
    assert done.err.splitlines()[0] == "error: RuntimeError: of all things and more [INTERNAL]"
    assert "Traceback" in amux("validate", "x", "--debug").err


def test_an_interrupted_command_reports_it(amux: Amux, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agent_mux.cli.inputs.read_bytes", interrupt)
    assert amux("validate", "x") == (13, "", "error: aborted [ABORTED]\n")


@pytest.mark.parametrize(
    ("arguments", "shown"),
    [
        (["run", "claude", "hi", "--modle", "x"], "did you mean --model?"),
        (["run", "claude", "hi", "--permission-mode", "plan"], "use --yolo, --deny or --plan"),
        (["run", "claude", "--dangerously-skip-permissions", "hi"], "use --yolo"),
        (["doctor", "--drfit"], "did you mean --drift?"),
        (["docter"], "Did you mean 'doctor'"),
        (["run", "cluade", "hi"], "did you mean 'claude'?"),
    ],
)
def test_misspelled_words_come_with_the_closest_known_one(amux: Amux, arguments: list[str], shown: str) -> None:
    done = amux(*arguments)
    assert done.code in {2, 3}
    assert shown in done.err
