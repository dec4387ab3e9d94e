"""One task in one harness: the real program, offline, with the scripted model, in a home directory of its own."""

import asyncio
import os
import re
import resource
import signal
import sys
import tempfile
import time
from asyncio.subprocess import DEVNULL, PIPE
from contextlib import suppress
from pathlib import Path

from agent_mux_testing.live import KitContext, kit_of
from agent_mux_testing.model_server import ScriptedModelServer
from agent_mux_testing.provision import SYSTEM_PATH, Provisioned, find_agent
from benchmarks.coding_tasks.harnesses import Harness
from benchmarks.coding_tasks.model import CodingModel
from benchmarks.coding_tasks.results import Outcome
from benchmarks.coding_tasks.steps import Task
from benchmarks.coding_tasks.workspaces import commit_all, environment, failures_of, write_workspace

LIMIT = 600.0
"""Seconds for one run, also on a busy machine."""
CONTROL_SEQUENCE = re.compile(r"\x1b\[[0-9;]*[A-Za-z]")


def find_harness(harness: Harness, scratch: Path) -> Provisioned | None:
    """Return the program of a harness; None if it is not provisioned.

    A harness that is part of this checkout is written to `scratch`, as the cache may have that of another checkout.
    """
    pin = kit_of(harness.agent).pins[0]
    if pin.script is None:
        return find_agent(harness.agent)
    program = scratch / pin.program
    program.parent.mkdir(parents=True, exist_ok=True)
    program.write_text(pin.script, "utf-8")
    program.chmod(0o755)
    return Provisioned(agent=harness.agent, version=pin.version, program=program, path=SYSTEM_PATH)


async def run_task(task: Task, harness: Harness, found: Provisioned) -> Outcome:
    """Run a task in a new workspace, and return its outcome."""
    with tempfile.TemporaryDirectory(prefix="coding-task-", ignore_cleanup_errors=True) as scratch:
        workspace = Path(scratch, "workspace")
        workspace.mkdir()
        write_workspace(task, workspace)
        commit_all(workspace)
        model = CodingModel(task, harness, workspace)
        async with ScriptedModelServer(model) as server:
            path = f"{found.path}:{Path(sys.executable).parent}"
            context = KitContext(url=server.url, home=Path(scratch, "home"), path=path)
            start, cpu_start = time.perf_counter(), _children_seconds()
            ended = await _run_program(task, harness, found, context, workspace)
            seconds, cpu_seconds = time.perf_counter() - start, _children_seconds() - cpu_start
        reason = _judge(task, model, workspace, ended).replace(scratch, "")
        return Outcome(found.version, reason, round(seconds, 2), round(cpu_seconds, 2), model.calls)


def _children_seconds() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


async def _run_program(task: Task, harness: Harness, found: Provisioned, context: KitContext, workspace: Path) -> str:
    """Run the program until it ends. Return how it failed to end well, or an empty text."""
    kit = kit_of(harness.agent)
    variables = {**kit.environment(context), "PYTHONDONTWRITEBYTECODE": environment()["PYTHONDONTWRITEBYTECODE"]}
    process = await asyncio.create_subprocess_exec(
        str(found.program), *(kit.once or ()), *harness.unattended, task.prompt,
        cwd=workspace, env=variables, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True,
    )  # fmt: skip
    try:
        async with asyncio.timeout(LIMIT):
            _, errors = await process.communicate()
    except TimeoutError:
        return f"the run did not end within {LIMIT:g} seconds"
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        await process.wait()
    return "" if process.returncode == 0 else f"exit code {process.returncode}: {_tail(errors)}"


def _tail(output: bytes) -> str:
    plain = CONTROL_SEQUENCE.sub("", output.decode("utf-8", "replace"))
    return " ".join(plain.split())[-300:]


def _judge(task: Task, model: CodingModel, workspace: Path, ended: str) -> str:
    """Return why a run failed, empty if its hidden tests pass and it ended."""
    failures = failures_of(task, workspace)
    if ended:
        return ended
    if not failures:
        return "" if model.finished or model.reason else "the run ended before the model was done"
    last_line = failures.strip().splitlines()[-1] if "Error" not in failures else _error_line(failures)
    stage = "" if model.finished else "the run ended before the model was done; "
    return model.reason or f"{stage}hidden tests: {last_line}"


def _error_line(failures: str) -> str:
    return [line for line in failures.splitlines() if "Error" in line][-1]
