"""A real CLI, driven through our client, against a scripted model.

In addition to the assertions of each scenario, `finish` asserts for every run: the event stream is valid, no native
line is unknown, a replay of the journal yields the same events byte for byte, no process and no file of the run is
left, and the journal contains no key.
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
from agent_mux.run.derivation import codec_factory, derive_events
from agent_mux.run.environment import temp_dir_of
from agent_mux.run.plan import plan_run
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

BOUND = 60.0  # seconds for waits that do not depend on an agent
POLL_INTERVAL = 0.02  # seconds between two checks of a condition without a notification
PROMPT = "do the thing"
GIT = shutil.which("git") or "git"


@dataclass(frozen=True)
class FinishedRun:
    """A finished run: its result and its events."""

    result: RunResult
    events: tuple[Any, ...]

    def types(self, *wanted: str) -> list[str]:
        """Return the types of its events in order, limited to `wanted` if given."""
        return [event.type for event in self.events if not wanted or event.type in wanted]

    def all(self, kind: str) -> list[Any]:
        """Return its events of a type."""
        return [event for event in self.events if event.type == kind]

    def one(self, kind: str) -> Any:
        """Return its only event of a type. Raise AssertionError when there is none or more than one."""
        found = self.all(kind)
        assert len(found) == 1, f"expected one {kind} event, got {len(found)}"
        return found[0]


class LiveAgent:
    """One agent at a pinned version, with its own home, workspace and scripted model."""

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
        self.use_workspace("workspace")

    def use_workspace(self, name: str) -> None:
        """Work in a new git repository of this name instead."""
        self.workspace = self.workspace.parent / name
        self.workspace.mkdir()
        self.git("init", "--quiet")

    # -- the model

    @property
    def model(self) -> ScriptedModel:
        """The scripted model; `script` starts it."""
        assert self._model is not None, "call script() first"
        return self._model

    def script(self, *steps: ScriptStep | tuple[ScriptStep, ...]) -> Self:
        """Start a model that answers with these steps in order."""
        flat = [inner for step in steps for inner in (step if isinstance(step, tuple) else (step,))]
        self._models += 1
        self._model = self._stack.enter_context(serve(*flat, first_id=self._models * 1000))
        return self

    def answer(self, *parts: Part, **fields: Any) -> ScriptStep:
        """Return one answer of the model, with further `fields` of `ScriptStep`."""
        return answer(self.kit, self.workspace, *parts, **fields)

    def delegation(self, task: str, *inside: Part) -> tuple[ScriptStep, ...]:
        """Return the answers of a model that delegates a task to a sub-agent and waits for its report."""
        return delegation(self.kit, self.workspace, task, *inside)

    def refusal(self, refusal: Refusal, *, repeat: bool | int = 1) -> ScriptStep:
        """Return an error of the provider instead of an answer."""
        return refuse(self.kit.api, refusal, repeat=repeat)

    # -- runs

    @property
    def launch(self) -> Launch:
        """The command and environment that start the agent."""
        context = KitContext(url=self.model.url, home=self.home, path=self.provisioned.path)
        return launch(self.kit, context, str(self.provisioned.program))

    @property
    def agent_arguments(self) -> tuple[str, ...]:
        """The arguments of `amux run` that select the agent."""
        command = self.launch.command
        return (self.agent, *(["--command", shlex.join(command)] if command else []))

    def options(self, prompt: str = PROMPT, **fields: Any) -> RunOptions:
        """Return options of a run in the workspace; by default tools run without approval. `env`: additions."""
        given = {"approval_mode": "yolo", "collect_events": True, **fields}
        start = self.launch
        environment = {**start.environment, **given.pop("env", {})}
        return RunOptions(
            agent=self.agent, command=start.command, prompt=prompt, cwd=self.workspace, env=environment,
            inherit_env=False, **given,
        )  # fmt: skip

    def agent_counts_turns(self, **fields: Any) -> bool:
        """Return whether the agent itself enforces `max_model_calls` in a run with these options."""
        return plan_run(self.options(**fields), AdapterRegistry().get, None).spawn.counts_turns

    @asynccontextmanager
    async def running(self, prompt: str = PROMPT, **fields: Any) -> AsyncIterator[RunHandle]:
        """Start a run and yield its handle. The run must end by itself within the kit's patience."""
        with anyio.fail_after(self.kit.patience):
            async with AgentMux(config_dir=self.config_directory) as mux:
                run = mux.run(self.options(prompt, **fields))
                yield run
                await run

    async def run(self, prompt: str = PROMPT, **fields: Any) -> FinishedRun:
        """Run the agent until it ends, and check the run."""
        async with self.running(prompt, **fields) as run:
            pass
        return await finish(run)

    # -- what scenarios inspect

    def git(self, *arguments: str, stdin: str = "") -> None:
        """Run git in the workspace. Raise `CalledProcessError` when it fails."""
        command = [GIT, *arguments]
        subprocess.run(
            command, cwd=self.workspace, input=stdin, text=True, check=True, capture_output=True, timeout=BOUND
        )

    @property
    def mcp_server(self) -> McpServer:
        """The MCP server with the tools that `Mcp` calls."""
        return McpServer(MCP_SERVER, command=sys.executable, args=(str(mcp_echo.__file__),))

    def file(self, name: str) -> Path:
        """Return the path of a file in the workspace."""
        return self.workspace / name

    def leader(self, run_id: str) -> int:
        """Return the process that a run has started: of its processes that lead a group, the oldest."""
        return min(pid for pid in processes_of(run_id) if os.getpgid(pid) == pid)

    def processes(self) -> list[str]:
        """Return the command lines of all processes that use the agent's home or workspace."""
        return processes_using(self.home, self.workspace)

    async def wait_for_file(self, name: str) -> None:
        """Wait until a file is in the workspace; the agent's tools emit no event when they begin."""
        while not self.file(name).exists():  # noqa: ASYNC110
            await anyio.sleep(POLL_INTERVAL)

    def assert_version(self, finished: FinishedRun) -> None:
        """Assert that result and stream name the version of the CLI."""
        version = finished.result.agent_version
        assert finished.one("session_start").agent_version == version
        # No stream and no npm package has the version of a CLI that pip installs, except where it speaks ACP.
        is_unknown = version is None and not pin_of(self.agent, self.provisioned.version).npm
        assert is_unknown or version == self.provisioned.version

    def assert_usage(self, finished: FinishedRun, *, calls: int, inside: int = 0) -> None:
        """Assert that cost and tokens of the run are those of this number of model calls.

        `inside` is the number of calls by sub-agents. They add to the cost, but not to the main agent's tokens.
        """
        per_call = self._cost_per_call(finished)
        cost, usage = finished.result.cost, finished.result.token_usage
        assert cost is not None
        assert usage is not None
        total = calls + inside
        assert (cost.input_tokens, cost.output_tokens) == (
            per_call.input_tokens * total,
            per_call.output_tokens * total,
        )
        optional = [None if one is None else one * total for one in (per_call.cached_tokens, per_call.thinking_tokens)]
        assert [cost.cached_tokens, cost.thinking_tokens] == optional
        assert (usage.input_tokens, usage.output_tokens) == (
            per_call.input_tokens * calls,
            per_call.output_tokens * calls,
        )
        # Calls of a model without a name have no price.
        source = per_call.source if per_call.source == "native" or finished.result.model else "unknown"
        assert cost.source == source
        assert (cost.total_usd > 0) == (source != "unknown")
        assert finished.one("session_end").cost == cost
        assert finished.all("cost")[-1].cost == cost
        if not inside:
            turns = [event.cost for event in finished.all("turn_end")]
            assert sum(turn.input_tokens for turn in turns if turn) == cost.input_tokens

    def _cost_per_call(self, finished: FinishedRun) -> CostRecord:
        """Return the cost of one scripted answer as this version reports it in the protocol of the run."""
        assert finished.result.journal is not None
        protocol = JournalReader(Path(finished.result.journal)).header.codec.protocol
        of_version = pin_of(self.agent, self.provisioned.version).per_call
        return self.kit.per_call_by_protocol.get(protocol) or of_version or self.kit.per_call


def processes_using(*directories: Path) -> list[str]:
    """Return the command lines of all live processes that mention one of these directories, or work there."""
    names = [os.fsencode(directory) for directory in directories]
    return [line for entry in Path("/proc").glob("[0-9]*") if (line := _command_line(entry, names)) is not None]


def _command_line(entry: Path, directories: list[bytes]) -> str | None:
    """Return the command line of a live process that mentions one of these directories, else None."""
    try:
        mentions = [
            (entry / "environ").read_bytes(),
            (entry / "cmdline").read_bytes(),
            os.fsencode((entry / "cwd").readlink()),
        ]
        is_dead = (entry / "stat").read_bytes().rpartition(b")")[2].split()[0] in {b"Z", b"X"}
    except OSError:
        return None  # the process has ended
    matches = not is_dead and any(directory in text for directory in directories for text in mentions)
    return mentions[1].replace(b"\0", b" ").decode("utf-8", "replace") if matches else None


async def finish(run: RunHandle) -> FinishedRun:
    """Wait for a run, check it as `check_result` does, and check that late subscribers get the same events."""
    done = check_result(await run)
    late = [encode_event(event) async for event in run]
    assert late == [encode_event(event) for event in done.events]
    return done


def check_result(result: RunResult) -> FinishedRun:
    """Return the finished run after checking everything that must hold for all runs."""
    assert result.events is not None
    assert result.journal is not None
    journal = Path(result.journal)
    assert validate(result.events) == []
    assert result.ledger.unknown == {}, result.ledger
    # A CLI that fails at startup prints only to stderr, and one that was ended early may print nothing.
    assert result.ledger.lines > 0 or result.exit_reason in {"failed", "interrupted", "aborted"}
    assert [encode_event(event) for event in replay_journal(journal)] == [encode_event(e) for e in result.events]
    assert DUMMY_KEY.encode() not in journal.read_bytes()
    assert_nothing_left(result.run_id)
    return FinishedRun(result, result.events)


async def wait_for_event(run: RunHandle, kind: str, count: int = 1) -> None:
    """Wait for the `count`th event of a type. Raise AssertionError when the run ends before it."""
    async for event in run:
        if event.type == kind:
            count -= 1
            if not count:
                return
    raise AssertionError(f"the run ended without {kind}")


def replay_journal(journal: Path) -> list[AgentEvent]:
    """Return the events derived from a journal."""
    return list(derive_events(journal, codec_factory(AdapterRegistry())))


def assert_nothing_left(run_id: str) -> None:
    """Assert that a run left no process and no temporary file."""
    assert processes_of(run_id) == []
    assert not temp_dir_of(run_id).exists()
