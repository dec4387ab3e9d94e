"""Recordings of real CLIs: one folder each, `fixtures/<agent>/<version>/<scenario>/`.

    run.toml            the run: agent, version, protocol, command, environment, cwd, note
    stdout.jsonl        every byte the agent printed
    times.json          seconds from the start to the arrival of each stdout line
    stdin.jsonl         its input, line by line (two-way protocols only)
    stdin_times.json    seconds from the start to each of those lines (missing in older recordings)
    stderr.txt          its stderr, unless empty
    exit.json           {"code", "signal", "wall_s"}
    script.json         the script of the model: the truth to check against
    settings.json       further settings of the codec, such as the profile of a program at a terminal, unless empty

Paths are neutral: the home is /home/dev, the project /home/dev/project, programs are named by their bare names.
"""

import datetime as dt
import json
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_mux.sdk.codec import Exit
from agent_mux.sdk.framing import Framing

__all__ = ["Fixture", "find_fixtures", "load_fixture", "save_fixture", "write_fixture"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fixture:
    """One recorded run of a real CLI."""

    agent: str
    version: str
    scenario: str
    protocol: str
    """Native protocol: `stream-json`, `stream-json-two-way`, `exec-json`, `app-server`; else `json`, `text`, `none`."""
    framing: Framing = "lines"
    """How the agent separates messages. In a recording each message is a line."""
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    """Variables besides PATH, HOME, TERM and LANG. Keys are dummies."""
    cwd: str = "/home/dev/project"
    recorded: dt.date
    note: str = ""
    stdout: bytes
    times: tuple[float, ...] = ()
    """Arrival of each stdout line, in seconds after the start."""
    stdin: tuple[bytes, ...] = ()
    """The lines of the input, without their endings. Empty for one-shot protocols."""
    stdin_times: tuple[float, ...] = ()
    stderr: bytes = b""
    exit: Exit
    wall_s: float
    script: Mapping[str, Any] = field(default_factory=dict)
    """The script in the format of `agent_mux_testing.model_server`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """The value of `CodecContext.settings`."""

    @property
    def name(self) -> str:
        """The folder below the root, and the id in tests: `<agent>/<version>/<scenario>`."""
        return f"{self.agent}/{self.version}/{self.scenario}"

    @property
    def stdout_lines(self) -> tuple[bytes, ...]:
        """The lines of stdout without their endings; a last line without an ending counts."""
        return split_lines(self.stdout)


def load_fixture(folder: Path) -> Fixture:
    """Load the recording in this folder. Raise `OSError`, `ValueError` or `KeyError` when it is not a recording."""
    run = tomllib.loads((folder / "run.toml").read_text("utf-8"))
    ending = _json(folder / "exit.json")
    return Fixture(
        agent=run["agent"],
        version=run["version"],
        scenario=run["scenario"],
        protocol=run["protocol"],
        framing=run.get("framing", "lines"),
        command=tuple(run["command"]),
        environment=run.get("environment", {}),
        cwd=run["cwd"],
        recorded=run["recorded"],
        note=run.get("note", ""),
        stdout=(folder / "stdout.jsonl").read_bytes(),
        times=tuple(_json(folder / "times.json")),
        stdin=split_lines(_bytes_or_none(folder / "stdin.jsonl")),
        stdin_times=tuple(_json(folder / "stdin_times.json", [])),
        stderr=_bytes_or_none(folder / "stderr.txt"),
        exit=Exit(code=ending["code"], signal=ending["signal"]),
        wall_s=ending["wall_s"],
        script=_json(folder / "script.json", {}),
        settings=_json(folder / "settings.json", {}),
    )


def find_fixtures(root: Path, agent: str = "*") -> tuple[Path, ...]:
    """Return the folders of all recordings below `root`, in a stable order; load them with `load_fixture`."""
    return tuple(sorted(found.parent for found in root.glob(f"{agent}/*/*/run.toml")))


def save_fixture(fixture: Fixture, root: Path) -> Path:
    """Write the recording below `root`, replacing one with the same name. Return its folder."""
    return write_fixture(fixture, root / fixture.name)


def write_fixture(fixture: Fixture, folder: Path) -> Path:
    """Write the recording into this folder itself. Return the folder."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "run.toml").write_text(_run_toml(fixture), "utf-8")
    (folder / "stdout.jsonl").write_bytes(fixture.stdout)
    _write_json(folder / "times.json", list(fixture.times))
    ending = {"code": fixture.exit.code, "signal": fixture.exit.signal, "wall_s": fixture.wall_s}
    _write_json(folder / "exit.json", ending)
    _write_json(folder / "script.json", fixture.script, indent=1)
    _write_or_remove(folder / "stdin.jsonl", b"".join(line + b"\n" for line in fixture.stdin))
    _write_or_remove(folder / "stderr.txt", fixture.stderr)
    times = json.dumps(list(fixture.stdin_times)) + "\n" if fixture.stdin_times else ""
    _write_or_remove(folder / "stdin_times.json", times.encode())
    settings = json.dumps(fixture.settings, indent=1, ensure_ascii=False) + "\n" if fixture.settings else ""
    _write_or_remove(folder / "settings.json", settings.encode())
    return folder


def split_lines(data: bytes) -> tuple[bytes, ...]:
    """Split at LF only: native JSON may contain U+2028 and carriage returns."""
    lines = data.split(b"\n")
    return tuple(lines if lines[-1] else lines[:-1])


def _run_toml(fixture: Fixture) -> str:
    texts = ("agent", "version", "scenario", "protocol", "cwd", "note")
    lines = [f"{name} = {_toml_string(getattr(fixture, name))}" for name in texts if getattr(fixture, name)]
    if fixture.framing != "lines":
        lines.append(f"framing = {_toml_string(fixture.framing)}")
    lines.append(f"recorded = {fixture.recorded.isoformat()}")
    lines += ["command = [", *(f"  {_toml_string(argument)}," for argument in fixture.command), "]"]
    lines += ["", "[environment]"]
    lines += [f"{name} = {_toml_string(value)}" for name, value in sorted(fixture.environment.items())]
    return "\n".join(lines) + "\n"


def _toml_string(text: str) -> str:
    # JSON strings are TOML basic strings, except for DEL, which TOML requires to be escaped.
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _json(path: Path, default: Any = None) -> Any:
    if default is not None and not path.exists():
        return default
    return json.loads(path.read_bytes())


def _bytes_or_none(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def _write_json(path: Path, value: Any, indent: int | None = None) -> None:
    path.write_text(json.dumps(value, indent=indent, ensure_ascii=False) + "\n", "utf-8")


def _write_or_remove(path: Path, data: bytes) -> None:
    if data:
        path.write_bytes(data)
    else:
        path.unlink(missing_ok=True)
