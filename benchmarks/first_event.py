"""The time from `mux.run` to `session_start`, compared with the bare CLI: real CLIs, offline, with the scripted model.

The bare contestant is an asyncio loop with the same command line, environment and standard input. It answers the
handshake and recognizes the start of the session with the same codec. It has no journal, no reaper and no supervision.

    python -m agent_mux_testing.offline -- python -m benchmarks first_event
"""

import asyncio
import os
import shlex
import signal
import sys
import tempfile
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_mux import AgentMux, Approve, RunOptions
from agent_mux.journal.records import Control, Kind, Record, encode
from agent_mux.process.marker import processes_of
from agent_mux.run.environment import private_files
from agent_mux.run.normalizer import Normalizer
from agent_mux.run.plan import RunPlan, plan_run
from agent_mux.sdk.codec import CloseStdin, Effect, WriteStdin
from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_testing.live import KitContext, LiveKit, Say, answer, launch
from agent_mux_testing.live.kits import kits
from agent_mux_testing.model_server import Script, ScriptedModelServer
from agent_mux_testing.offline import is_offline
from agent_mux_testing.provision import Provisioned, find_agent
from benchmarks.measure import Rounds, report
from benchmarks.synthetic import write_stream

COMMAND = "python -m agent_mux_testing.offline -- python -m benchmarks first_event"
ROUNDS = 5
INSTANT_ROUNDS = 51
CHUNK = 1 << 16
FIRST = "session_start"
START_TIMEOUT = 120.0  # seconds
_OPTIONS: Mapping[str, Mapping[str, Any]] = {"one_shot": {}, "two_way": {"on_approval_request": lambda _: Approve()}}


async def ours(options: RunOptions, directory: Path) -> float:
    """Return the seconds until the consumer receives the first event of the first run of a client."""
    async with asyncio.timeout(START_TIMEOUT), AgentMux(config_dir=directory) as mux:
        start = time.perf_counter()
        run = mux.run(options)
        async for event in run:
            if event.type == FIRST:
                break
        taken = time.perf_counter() - start
        run.kill()
        await run
        return taken


async def bare(options: RunOptions) -> float:
    """Return the seconds until the line that starts the session is read. Planning is not measured."""
    plan = plan_run(options, AdapterRegistry().get, None)
    with private_files(plan.temp_dir, plan.spawn.files):
        async with asyncio.timeout(START_TIMEOUT):
            start = time.perf_counter()
            process = await asyncio.create_subprocess_exec(
                *plan.spawn.argv,
                stdin=asyncio.subprocess.PIPE if plan.spawn.stdin == "pipe" else asyncio.subprocess.DEVNULL,
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.DEVNULL,
                env=dict(plan.environ),
                cwd=plan.cwd,
                start_new_session=True,
            )
            try:
                await _wait_for_session(process, plan)
                return time.perf_counter() - start
            finally:
                await _kill(process, plan)


async def _wait_for_session(process: asyncio.subprocess.Process, plan: RunPlan) -> None:
    assert process.stdout is not None
    reader = Normalizer(plan.header, plan.new_codec, context=plan.context)
    if plan.spawn.stdin_text is not None:
        _perform(process, (WriteStdin(plan.spawn.stdin_text.encode()), CloseStdin()))
    reader.feed(Record(Kind.CONTROL, 0, encode(Control("start"))))
    _perform(process, reader.take_effects())
    while chunk := await process.stdout.read(CHUNK):
        if any(event.type == FIRST for event in reader.feed(Record(Kind.STDOUT, 0, chunk))):
            return
        _perform(process, reader.take_effects())
    raise RuntimeError(f"{plan.adapter.agent} ended without a session")


def _perform(process: asyncio.subprocess.Process, effects: Iterable[Effect]) -> None:
    for effect in effects:
        assert process.stdin is not None
        if isinstance(effect, WriteStdin):
            process.stdin.write(effect.data)
        elif isinstance(effect, CloseStdin):
            process.stdin.close()


async def _kill(process: asyncio.subprocess.Process, plan: RunPlan) -> None:
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    for stray in processes_of(plan.run_id):
        with suppress(ProcessLookupError):
            os.kill(stray, signal.SIGKILL)
    await process.wait()


async def measure(kit: LiveKit, found: Provisioned, fields: Mapping[str, Any]) -> Rounds | None:
    """Return the times of both contestants; None for an agent at a terminal, which prints no lines."""
    with tempfile.TemporaryDirectory(prefix="agent-mux-bench-", ignore_cleanup_errors=True) as scratch:
        workspace = Path(scratch, "workspace")
        workspace.mkdir()
        script = Script(steps=(answer(kit, workspace, Say("Hello."), repeat=True),))
        async with ScriptedModelServer(script) as server:
            start = launch(
                kit, KitContext(url=server.url, home=Path(scratch, "home"), path=found.path), str(found.program)
            )
            options = RunOptions(
                agent=kit.agent, command=start.command, prompt="hi", cwd=workspace, env=start.environment,
                inherit_env=False, approval_mode="yolo", **fields,
            )  # fmt: skip
            if plan_run(options, AdapterRegistry().get, None).spawn.terminal is not None:
                return None
            return await interleaved(options, Path(scratch, "mux"), ROUNDS)


async def interleaved(options: RunOptions, directory: Path, rounds: int) -> Rounds:
    """Run both contestants in each round, in alternating order."""
    await bare(options)  # warm-up: the first start in a home directory takes longer
    seconds = Rounds(bare=[], ours=[])
    for number in range(rounds):
        for name in ("bare", "ours")[:: 1 if number % 2 else -1]:
            seconds[name].append(await (bare(options) if name == "bare" else ours(options, directory)))
    return seconds


async def instant_program(scratch: Path) -> Rounds:
    """Return the times of both contestants with a program that prints at once: the difference is our overhead."""
    stream, program = write_stream(scratch / "stream.jsonl", 10), scratch / "claude"
    program.write_text(f"#!/bin/sh\nexec cat {shlex.quote(str(stream))}\n")
    program.chmod(0o755)
    env = {"AMUX_CLAUDE_EXECUTABLE": str(program), "IS_SANDBOX": "1"}
    options = RunOptions(agent="claude", prompt="hi", cwd=scratch, env=env, approval_mode="yolo")
    return await interleaved(options, scratch / "mux", INSTANT_ROUNDS)


def main(scratch: Path) -> None:
    """Print a line for each installed agent and protocol variant."""
    if not is_offline():
        sys.exit(f"real CLIs are started only offline: {COMMAND}")
    report(f"From start to first event, compared with the bare CLI, {ROUNDS} rounds", [])
    print(f"  {_row('a program that prints at once', asyncio.run(instant_program(scratch)))}", flush=True)
    for kit in kits().values():
        found = find_agent(kit.agent)
        if found is None:
            print(f"  {kit.agent} is not provisioned")
            continue
        for way in kit.ways:
            name = f"{kit.agent} {found.version} {way}"
            try:
                seconds = asyncio.run(measure(kit, found, _OPTIONS[way]))
            except (RuntimeError, TimeoutError) as error:
                print(f"  {name:<30} was not measured: {error!r}", flush=True)
                continue
            if seconds is not None:
                print(f"  {_row(name, seconds)}", flush=True)


def _row(name: str, seconds: Rounds) -> str:
    bare_time, our_time = (1000 * seconds.typical(one) for one in ("bare", "ours"))
    overhead, ratio = 1000 * seconds.difference("ours", "bare"), seconds.ratio("ours", "bare")
    return f"{name:<30} bare {bare_time:7.1f} ms  ours {our_time:7.1f} ms  {overhead:+7.1f} ms  ratio {ratio:5.3f}"
