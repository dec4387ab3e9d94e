"""A kit: everything about an agent that is needed to drive its real CLI offline, against the scripted model.

An adapter package has one kit for each of its agents, in a module of its own (`live.py`), and names it in the
entry-point group `agent_mux.live_kits`. The end-to-end suite and `amux doctor --drift` find it there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent_mux.events.base import CostRecord
from agent_mux_testing.live.parts import ToolPart
from agent_mux_testing.live.probes import OptionName, OptionProbe
from agent_mux_testing.model_server.script import Block, Item, ScriptStep

__all__ = [
    "DUMMY_KEY",
    "Gap",
    "InstallationProbes",
    "KitContext",
    "LiveKit",
    "ModelApi",
    "Pin",
    "UnsupportedPart",
    "Way",
]

DUMMY_KEY = "sk-dummy"
"""The API key in all tests: no journal may contain it."""

ModelApi = Literal["messages", "responses", "chat", "generate"]
"""The API between the agent and the model: Anthropic Messages, OpenAI Responses, OpenAI chat completions,
Gemini's `generateContent`."""


Way = Literal["one_shot", "two_way"]
"""How a scenario is run: with one prompt and the cheapest protocol, or with a consumer who can answer."""


class UnsupportedPart(ValueError):  # noqa: N818  # a property of the agent, not an error
    """The agent has no tool for this part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One version of a CLI, and its installation for tests: in a folder of its own, never in the system."""

    version: str
    npm: tuple[str, ...] = ()
    """npm packages with versions; `{os}` and `{arch}` are npm's names for this machine. Install scripts do not run."""
    pip: str | None = None
    """A requirement for pip, which is installed in a virtual environment of its own."""
    script: str | None = None
    """The content of the executable file `program`, written instead of an installation, for installed programs."""
    program: str
    """Glob below the folder. It must match the native program, not a launcher: signals must reach it."""
    path: tuple[str, ...] = ()
    """Globs of directories below the folder that belong on PATH."""
    per_call: CostRecord | None = None
    """As `LiveKit.per_call`, where this version reports other figures."""
    needs: tuple[str, ...] = ()
    """Further tools that must be on PATH: `node-24`, `ripgrep`."""
    gaps: Mapping[str, "Gap"] = field(default_factory=dict)
    """As `LiveKit.gaps`, for this version only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class KitContext:
    """The addresses and directories from which the environment of a run is built."""

    url: str
    """The URL of the scripted model, without a path."""
    home: Path
    """A home directory for this run only; `LiveKit.environment` writes what the agent needs there."""
    path: str
    """The PATH: directories of the pin, of the tools that it needs, and of the system."""

    def minimal(self, **more: str) -> dict[str, str]:
        """Return the variables that every agent gets, and `more`. Create the home directory."""
        self.home.mkdir(parents=True, exist_ok=True)
        return {"PATH": self.path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8", **more}

    def write(self, name: str, text: str) -> Path:
        """Write a file below the home directory, and return its path."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def write_default(self, name: str, text: str) -> Path:
        """Write the file as `write` does unless it exists, so that changes of a scenario are kept."""
        path = self.home / name
        return path if path.exists() else self.write(name, text)


@dataclass(frozen=True, slots=True)
class Gap:
    """The reason why a scenario does not work with an agent.

    `never`: not a feature of this agent. `not_yet`: missing or broken upstream. `not_impl`: missing in our adapter. A
    scenario with a gap must fail; when it passes, the gap has been closed.
    """

    kind: Literal["never", "not_yet", "not_impl"]
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class InstallationProbes:
    """Arguments with which the CLI itself reads and changes its installation. None: the CLI cannot."""

    list_mcp: tuple[str, ...] | None = None
    """Print the names of its MCP servers, reachable or not."""
    add_mcp: Callable[[str, str, tuple[str, ...]], tuple[str, ...]] | None = None
    """Add an MCP server (name, program, its arguments) in the user's scope."""
    add_mcp_input: str = ""
    """Input for questions of the CLI while it adds a server."""
    report_login: tuple[str, ...] | None = None
    """Report whether the CLI has credentials."""
    is_logged_in: Callable[[int, str], bool] = lambda exit_code, _: exit_code == 0
    """Interpret the exit code and the output (both streams) of `report_login`."""
    write_plugin: Callable[[Path], tuple[tuple[tuple[str, ...], ...], str, str]] | None = None
    """Write a plugin below a directory. Return commands to run first, the argument of `install`, and its name."""
    grant_consent: Callable[[Path, Path, Path], None] = lambda _home, _workspace, _main: None
    """Write the consent that a person would give before it uses a definition: home, workspace, main file."""
    model: str | None = None
    """Another model that its configuration may select."""
    split_input: Callable[[tuple[str, ...]], tuple[tuple[str, ...], str]] = lambda words: (words, "")
    """Convert arguments to arguments and standard input, for an agent that reads them from stdin."""
    print_model: tuple[str, ...] | None = None
    """Print the model of its configuration, for an agent that would not use that model with the scripted provider."""
    model_listing_subagents: str | None = None
    """A model whose requests list all sub-agents, where the usual model would have to search for them."""
    trust: Callable[[Path, Path], None] = lambda home, workspace: None  # noqa: ARG005  # most have no such question
    """Write to the home directory that the user trusts a workspace, so that its project files are used."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveKit:
    """Everything that is needed to drive one agent."""

    agent: str
    """The registered name of the adapter."""
    pins: tuple[Pin, ...]
    """The recorded versions; the first one is tested by default."""
    environment: Callable[[KitContext], dict[str, str]]
    """Return the whole environment of the agent (`env -i`), with dummy keys, and write its configuration."""
    arguments: tuple[str, ...] = ()
    """Arguments that make the program use the protocol, for adapters of any program (`Adapter.takes_command`)."""
    api: ModelApi
    format_tool_call: Callable[[ToolPart, Path], Block | Item]
    """Return the tool call for a part in this workspace. Raise `UnsupportedPart` when the agent has no tool for it."""
    per_call: CostRecord
    """The cost of one answer of the scripted model, as our events should report it; see `model_server`."""
    per_call_by_protocol: Mapping[str, CostRecord] = field(default_factory=dict)
    """As `per_call`, for native protocols that report other figures."""
    after_delegation: tuple[ScriptStep, ...] = ()
    """Answers of the model that are due before it receives the report of a sub-agent."""
    ways: tuple[Way, ...] = ("one_shot", "two_way")
    """The ways that differ for this agent; only one when all options lead to the same native protocol."""
    once: tuple[str, ...] | None = None
    """Arguments with which the bare CLI answers the prompt after them and exits. None: it has no such mode."""
    patience: float = 60.0
    """Seconds that a scenario may take on a busy machine."""
    help: tuple[tuple[str, ...], ...] = (("--help",),)
    """Arguments with which the CLI prints its flags."""
    baseline: Path | None = None
    """The output of the CLI at its pinned version, as `drift.py` writes it: a file beside the kit, shipped with it."""
    unstable: str | None = None
    """Pattern of output that depends on timing and belongs in no baseline.

    It is matched with "kind path" of a message and a field (`shapes.py`); "kind " stands for the whole kind.
    """
    installation: InstallationProbes = InstallationProbes()
    """How its installation is read and changed."""
    probes: Mapping[OptionName, OptionProbe] = field(default_factory=dict)
    """A probe for each of these options that the agent has."""
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    """Gaps by scenario: the name of its test without `test_`, with the way if it has several (`scenario/way`)."""

    def gaps_of(self, version: str = "") -> Mapping[str, Gap]:
        """Return the gaps by scenario in a pinned version; default: the newest."""
        pin = next((pin for pin in self.pins if pin.version == version), self.pins[0])
        return {**self.gaps, **pin.gaps}
