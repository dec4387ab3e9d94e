"""A real CLI, driven through our client, against a model that says what it was told to.

Whatever a scenario asserts, `finish` asserts for every run: the event stream is lawful, no native line is unknown, the
journal tells the same events again, byte for byte, no process and no file of the run is left, and no key was recorded.
"""

import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import anyio
from tests.e2e.model import ScriptedModel, serve

from agent_mux import AgentMux, McpServer, RunHandle, RunOptions, RunResult, encode_event, validate
from agent_mux.events import AgentEvent, CostRecord
from agent_mux.journal.file import JournalReader
from agent_mux.process.marker import processes_of
from agent_mux.run.derivation import derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.plan import find_protocol, plan_run
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing import mcp_echo
from agent_mux_testing.live import (
    DUMMY_KEY,
    MCP_SERVER,
    KitContext,
    Launch,
    Part,
    Refusal,
    answer,
    delegation,
    kit_of,
    launch,
    pin_of,
    refuse,
)
from agent_mux_testing.model_server import ScriptStep
from agent_mux_testing.provision import Provisioned

BOUND = 60.0  # seconds for what is no agent's
POLL_INTERVAL = 0.02  # seconds between two looks at what nobody tells of
PROMPT = "do the thing"
GIT = shutil.which("git") or "git"


@dataclass(frozen=True)
class FinishedRun:
    """A run that is over."""

    result: RunResult
    events: tuple[Any, ...]

    def types(self, *wanted: str) -> list[str]:
        """The types of its events, in order; only these, if some are named."""
        return [event.type for event in self.events if not wanted or event.type in wanted]

    def all(self, kind: str) -> list[Any]:
        """Its events of a type."""
        return [event for event in self.events if event.type == kind]

    def one(self, kind: str) -> Any:
        """Its only event of a type."""
        found = self.all(kind)
        assert len(found) == 1, f"{len(found)} times {kind}"
        return found[0]


class LiveAgent:
    """One agent at its pinned version, with a home, a workspace and a scripted model of its own."""

    def __init__(self, provisioned: Provisioned, directory: Path, stack: ExitStack) -> None:
        self.agent = provisioned.agent
        self.kit = kit_of(provisioned.agent)
        self.adapter = AdapterRegistry().get(provisioned.agent)
        self.home = directory / "home"
        self.workspace = directory / "workspace"
        self.config_directory = directory / "mux"
        self.provisioned = provisioned
        self._stack = stack
        self._model: ScriptedModel | None = None
        self._models = 0
        self.workspace.mkdir()
        self.git("init", "--quiet")

    # -- the model

    @property
    def model(self) -> ScriptedModel:
        """The scripted model."""
        assert self._model is not None, "tell the model what to say first"
        return self._model

    def script(self, *steps: ScriptStep | tuple[ScriptStep, ...]) -> Self:
        """Start the model that says these things, one after the other."""
        flat = [inner for step in steps for inner in (step if isinstance(step, tuple) else (step,))]
        self._models += 1
        self._model = self._stack.enter_context(serve(*flat, first_id=self._models * 1000))
        return self

    def answer(self, *parts: Part, **fields: Any) -> ScriptStep:
        """One answer of the model. `fields` are those of `ScriptStep`."""
        return answer(self.kit, self.workspace, *parts, **fields)

    def delegation(self, task: str, *inside: Part) -> tuple[ScriptStep, ...]:
        """The model has a sub-agent do something and waits for the report."""
        return delegation(self.kit, self.workspace, task, *inside)

    def refusal(self, refusal: Refusal, *, repeat: bool | int = 1) -> ScriptStep:
        """The model's provider does not answer."""
        return refuse(self.kit.api, refusal, repeat=repeat)

    # -- runs

    @property
    def launch(self) -> Launch:
        """What starts the agent."""
        context = KitContext(url=self.model.url, home=self.home, path=self.provisioned.path)
        return launch(self.kit, context, str(self.provisioned.program))

    @property
    def agent_arguments(self) -> tuple[str, ...]:
        """The agent on the command line of `amux run`."""
        command = self.launch.command
        return (self.agent, *(["--command", shlex.join(command)] if command else []))

    def options(self, prompt: str = PROMPT, **fields: Any) -> RunOptions:
        """Options of a run in the workspace; tools run unasked unless the scenario says otherwise."""
        given = {"approval_mode": "yolo", "collect_events": True, **fields}
        start = self.launch
        return RunOptions(
            agent=self.agent, command=start.command, prompt=prompt, cwd=self.workspace, env=start.environment,
            inherit_env=False, **given,
        )  # fmt: skip

    def agent_counts_turns(self, **fields: Any) -> bool:
        """The agent keeps to `max_turns` by itself, in a run with these options."""
        return plan_run(self.options(**fields), AdapterRegistry().get, None).spawn.counts_turns

    @asynccontextmanager
    async def running(self, prompt: str = PROMPT, **fields: Any) -> AsyncIterator[RunHandle]:
        """A run to talk to. It has to end by itself before the bound."""
        with anyio.fail_after(self.kit.patience):
            async with AgentMux(config_dir=self.config_directory) as mux:
                run = mux.run(self.options(prompt, **fields))
                yield run
                await run

    async def run(self, prompt: str = PROMPT, **fields: Any) -> FinishedRun:
        """A run from start to end."""
        async with self.running(prompt, **fields) as run:
            pass
        return await finish(run)

    # -- what scenarios look at

    def git(self, *arguments: str, stdin: str = "") -> None:
        """Run git in the workspace. Raises if it fails."""
        command = [GIT, *arguments]
        subprocess.run(
            command, cwd=self.workspace, input=stdin, text=True, check=True, capture_output=True, timeout=BOUND
        )

    @property
    def mcp_server(self) -> McpServer:
        """The MCP server whose tools `Mcp` calls."""
        return McpServer(MCP_SERVER, command=sys.executable, args=(str(mcp_echo.__file__),))

    def file(self, name: str) -> Path:
        """A file in the workspace."""
        return self.workspace / name

    def processes(self) -> list[str]:
        """Command lines of everything that lives in the agent's home or workspace, however it was started."""
        places = [os.fsencode(self.home), os.fsencode(self.workspace)]
        return [shown for entry in Path("/proc").glob("[0-9]*") if (shown := _shown(entry, places)) is not None]

    async def wait_for_file(self, name: str) -> None:
        """Wait until a file is in the workspace: the agent's tools tell nobody that they have begun."""
        while not self.file(name).exists():  # noqa: ASYNC110
            await anyio.sleep(POLL_INTERVAL)

    def assert_usage(self, finished: FinishedRun, *, calls: int, inside: int = 0) -> None:
        """Assert what the run used: exactly what the model says that these calls used, and nothing twice.

        `inside`: calls of sub-agents. They cost, but are no calls of the main agent.
        """
        told = self._cost_per_call(finished)
        cost, usage = finished.result.cost, finished.result.token_usage
        assert cost is not None
        assert usage is not None
        every = calls + inside
        assert (cost.input_tokens, cost.output_tokens) == (told.input_tokens * every, told.output_tokens * every)
        several = [None if one is None else one * every for one in (told.cached_tokens, told.thinking_tokens)]
        assert [cost.cached_tokens, cost.thinking_tokens] == several
        assert (usage.input_tokens, usage.output_tokens) == (told.input_tokens * calls, told.output_tokens * calls)
        # Nobody can price the calls of a model that has no name.
        source = told.source if told.source == "native" or finished.result.model else "unknown"
        assert cost.source == source
        assert (cost.total_usd > 0) == (source != "unknown")
        assert finished.one("session_end").cost == cost
        assert finished.all("cost")[-1].cost == cost
        if not inside:
            turns = [event.cost for event in finished.all("turn_end")]
            assert sum(turn.input_tokens for turn in turns if turn) == cost.input_tokens

    def _cost_per_call(self, finished: FinishedRun) -> CostRecord:
        """What an answer of the scripted model costs, as this version tells it in the protocol of the run."""
        assert finished.result.journal is not None
        protocol = JournalReader(Path(finished.result.journal)).header.codec.protocol
        of_version = pin_of(self.agent, self.provisioned.version).per_call
        return self.kit.per_call_by_protocol.get(protocol) or of_version or self.kit.per_call


def _shown(entry: Path, places: list[bytes]) -> str | None:
    """The command line of a living process that is about one of these places."""
    try:
        told = [
            (entry / "environ").read_bytes(),
            (entry / "cmdline").read_bytes(),
            os.fsencode((entry / "cwd").readlink()),
        ]
        is_dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in {b"Z", b"X"}
    except OSError:
        return None  # gone meanwhile
    is_there = not is_dead and any(place in text for place in places for text in told)
    return told[1].replace(b"\0", b" ").decode("utf-8", "replace") if is_there else None


async def finish(run: RunHandle) -> FinishedRun:
    """What became of a run, having checked what must hold for all of them."""
    done = check_result(await run, run.agent)
    late = [encode_event(event) async for event in run]
    assert late == [encode_event(event) for event in done.events]
    return done


def check_result(result: RunResult, agent: str) -> FinishedRun:
    """What became of a run, having checked what can be seen from its result."""
    assert result.events is not None
    assert result.journal is not None
    journal = Path(result.journal)
    assert validate(result.events) == []
    assert result.ledger.unknown == {}, result.ledger
    # A CLI that refuses at once says so on standard error alone, and one that was interrupted early may say nothing.
    assert result.ledger.lines > 0 or result.exit_reason in {"failed", "interrupted"}
    assert [encode_event(event) for event in replay_journal(journal, agent)] == [encode_event(e) for e in result.events]
    assert DUMMY_KEY.encode() not in journal.read_bytes()
    assert_nothing_left(result.run_id)
    return FinishedRun(result, result.events)


async def wait_for_event(run: RunHandle, kind: str, count: int = 1) -> None:
    """Wait for an event."""
    async for event in run:
        if event.type == kind:
            count -= 1
            if not count:
                return
    raise AssertionError(f"the run ended without {kind}")


def replay_journal(journal: Path, agent: str) -> list[AgentEvent]:
    """The events that a journal tells."""
    registry = AdapterRegistry()
    return list(
        derive_events(
            journal, lambda context: find_protocol(registry.get(agent), context.protocol, registry.get).codec(context)
        )
    )


def assert_nothing_left(run_id: str) -> None:
    """Assert that a run left no process and no file of its own."""
    assert processes_of(run_id) == []
    assert not temp_dir_of(run_id).exists()
