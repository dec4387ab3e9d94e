"""A kit: what one has to know of an agent to drive its real CLI offline, against the scripted model.

An adapter package has one for each of its agents, in a module of its own (`live.py`), and names it in the entry-point
group `agent_mux.live_kits`. The end-to-end suite and `amux doctor --drift` find it there.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from agent_mux.events.cost import CostRecord
from agent_mux.testing.live.parts import ToolPart
from agent_mux.testing.model_server.script import Block, Item, Step

__all__ = ["DUMMY_KEY", "Gap", "HomeProbes", "LiveKit", "ModelApi", "Pin", "Place", "Unspeakable", "Way"]

DUMMY_KEY = "sk-dummy"
"""What stands for a key everywhere: no journal may hold it."""

ModelApi = Literal["messages", "responses", "chat", "generate"]
"""What the agent asks the model with: Anthropic Messages, OpenAI Responses, OpenAI chat completions,
Gemini's `generateContent`."""


Way = Literal["one_shot", "two_way"]
"""How a scenario is run: as cheaply as the options allow, or so that somebody can answer."""


class Unspeakable(ValueError):  # noqa: N818  # no error of anybody: a fact about an agent
    """The agent's model has no way to say this part: the agent has no such tool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Pin:
    """One version of a CLI, and how it is installed for tests: into a folder of its own, never into the system."""

    version: str
    npm: tuple[str, ...] = ()
    """Packages, each with its version; `{os}` and `{arch}` are npm's names for this machine. No scripts are run."""
    pip: str | None = None
    """A requirement, for a virtual environment of its own."""
    script: str | None = None
    """Instead of being installed: what is written as `program`, an executable file. For what is here anyway."""
    program: str
    """Glob below the folder, of the native program itself where there is one: signals must reach it."""
    path: tuple[str, ...] = ()
    """Directories below the folder that have to be on PATH (globs)."""
    per_call: CostRecord | None = None
    """As `LiveKit.per_call`, where this version tells other figures."""
    needs: tuple[str, ...] = ()
    """Tools that have to be on PATH, too: `node-24`, `ripgrep`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a run happens: all that its environment may be made of."""

    url: str
    """Of the scripted model, without a path."""
    home: Path
    """Empty and its own. What the agent needs there is written by `LiveKit.environment`."""
    path: str
    """PATH: the directories of the pin, of the tools it needs, and of the system."""

    def minimal(self, **more: str) -> dict[str, str]:
        """The environment that every agent gets, and `more`. The home is there afterwards."""
        self.home.mkdir(parents=True, exist_ok=True)
        return {"PATH": self.path, "HOME": str(self.home), "TERM": "dumb", "LANG": "C.UTF-8", **more}

    def write(self, name: str, text: str) -> Path:
        """A file in the home. Returns it."""
        path = self.home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, "utf-8")
        return path

    def leave(self, name: str, text: str) -> Path:
        """As `write`, unless there is one: what a scenario made of it stays."""
        path = self.home / name
        return path if path.exists() else self.write(name, text)


@dataclass(frozen=True, slots=True)
class Gap:
    """Why a scenario does not work with an agent.

    `never`: it is no part of this agent. `not_yet`: the agent lacks it, or has it broken, upstream. `not_impl`: we lack
    it. A scenario with a gap has to fail; when it passes, the gap is closed.
    """

    kind: Literal["never", "not_yet", "not_impl"]
    reason: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.reason}"


@dataclass(frozen=True, slots=True, kw_only=True)
class HomeProbes:
    """How the CLI itself is asked about what is in its home, and told: words behind the program. None: it cannot."""

    lists_mcp: tuple[str, ...] | None = None
    """Prints the names of its MCP servers, whether they can be reached or not."""
    adds_mcp: Callable[[str, str, tuple[str, ...]], tuple[str, ...]] | None = None
    """Adds a server (name, program, its arguments) for all of the user's work."""
    answers: str = ""
    """What a person types when the CLI asks back while it adds one."""
    says_login: tuple[str, ...] | None = None
    """Says whether it has credentials."""
    is_logged_in: Callable[[int, str], bool] = lambda exit_code, _: exit_code == 0
    """What that said: the exit code, and what was printed on both streams."""
    plugin: Callable[[Path], tuple[tuple[tuple[str, ...], ...], str, str]] | None = None
    """Writes a plugin below a directory: commands that come first, what `install` takes, and the name it has then."""
    agrees: Callable[[Path, Path, Path], None] = lambda _home, _workspace, _main: None
    """What a person does at its terminal before it takes a definition: home directory, workspace, main file."""
    model: str | None = None
    """Another model that it can be told to use by its configuration."""
    spoken: Callable[[tuple[str, ...]], tuple[tuple[str, ...], str]] = lambda words: (words, "")
    """Words as they reach the agent: behind the program, and on standard input, where it is told things there."""
    says_model: tuple[str, ...] | None = None
    """Prints the model of its configuration, for an agent that takes no such model to the scripted provider."""
    eager_model: str | None = None
    """A model that is told of all sub-agents at once, where the usual one would have to search for them."""
    trust: Callable[[Path, Path], None] = lambda home, workspace: None  # noqa: ARG005  # most have no such question
    """Has it trust a workspace, as a person would who is asked: writes into the home. The files of a project count."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LiveKit:
    """How to drive one agent."""

    agent: str
    """Registered name of the adapter."""
    pins: tuple[Pin, ...]
    """The versions that the recordings are of; the first is the one that is tested when nothing else is said."""
    environment: Callable[[Place], dict[str, str]]
    """Everything the agent gets for an environment (`env -i`), with dummy keys; writes its configuration."""
    arguments: tuple[str, ...] = ()
    """What follows the program so that it speaks the protocol, where the adapter drives any program
    (`Adapter.takes_command`)."""
    api: ModelApi
    spell: Callable[[ToolPart, Path], Block | Item]
    """How the agent's model calls a tool for a part, in this workspace. Raises `Unspeakable` if it has none."""
    per_call: CostRecord
    """What one answer of the scripted model costs, as our events should count it; see `model_server`."""
    per_call_by_protocol: Mapping[str, CostRecord] = field(default_factory=dict)
    """As `per_call`, for native protocols that tell other figures."""
    after_delegation: tuple[Step, ...] = ()
    """What the model has to say before it gets the report of a sub-agent."""
    ways: tuple[Way, ...] = ("one_shot", "two_way")
    """Ways that differ for this agent: one where all options lead to the same native protocol."""
    once: tuple[str, ...] | None = None
    """Arguments with which the bare CLI answers the prompt that follows them, and ends. None: it has no such mode."""
    patience: float = 60.0
    """Seconds that a scenario may take, on a busy machine: for agents that start slowly."""
    help: tuple[tuple[str, ...], ...] = (("--help",),)
    """Arguments with which the CLI tells its flags."""
    baseline: Path | None = None
    """What the CLI printed at its pinned version, as `drift.py` writes it: beside the kit, and shipped with it."""
    unsteady: str | None = None
    """Pattern of what the CLI prints at one time and not at another: matched with the kind of a message and the path of
    a field, with a blank between (`shapes.py`); with an empty path it is the whole kind. It is in no baseline."""
    home: HomeProbes = HomeProbes()
    """How its home is looked into."""
    gaps: Mapping[str, Gap] = field(default_factory=dict)
    """By scenario: the name of its test without `test_`, and the way if it goes several (`scenario/way`)."""
