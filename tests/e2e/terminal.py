"""The installed `amux`, run without a terminal or at a pseudo-terminal."""

import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.e2e.harness import BOUND, POLL_INTERVAL, LiveAgent, assert_nothing_left
from tests.pseudo_terminal import PseudoTerminal

from agent_mux import decode_event, validate

AMUX = Path(sys.executable).with_name("amux")


@dataclass(frozen=True)
class CommandOutput:
    """The exit code and the output of a command."""

    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The standard output, parsed as JSONL."""
        return [json.loads(line) for line in self.out.splitlines()]

    def check_stream(self) -> tuple[list[str], dict[str, Any]]:
        """Return the event types and the result that `run --json` printed, after checking both."""
        *events, result = self.out.splitlines()
        decoded = [decode_event(line) for line in events]
        assert validate(decoded) == []
        parsed: dict[str, Any] = json.loads(result)
        assert parsed["type"] == "run_result"
        assert parsed["ledger"]["unknown"] == {}
        assert_nothing_left(parsed["runId"])
        return [event.type for event in decoded], parsed


def amux(live: LiveAgent, *arguments: str, stdin: str | None = None) -> CommandOutput:
    """Run `amux` without a terminal. stdin is a pipe with this text, or `/dev/null` when None."""
    done = subprocess.run(
        [AMUX, *arguments],
        cwd=live.workspace,
        env=environment(live),
        **({"input": stdin} if stdin is not None else {"stdin": subprocess.DEVNULL}),
        capture_output=True,
        text=True,
        timeout=live.kit.patience,
        check=False,
    )
    return CommandOutput(done.returncode, done.stdout, done.stderr)


def amux_at_terminal(live: LiveAgent, *arguments: str, when: str, type_in: str) -> CommandOutput:
    """Run `amux` at a pseudo-terminal, and type `type_in` once the output contains `when`."""
    command = [str(AMUX), *arguments]
    variables = {**environment(live), "TERM": "xterm-256color"}
    with PseudoTerminal(command, variables, live.workspace, patience=live.kit.patience) as terminal:
        terminal.expect(when)
        terminal.type(type_in)
        return CommandOutput(terminal.finish(), terminal.output, "")


@contextmanager
def running_amux(live: LiveAgent, *arguments: str, until: str) -> Iterator[subprocess.Popen[str]]:
    """Start `amux`, and yield its process once the file `until` exists in the workspace."""
    process = subprocess.Popen(
        [AMUX, *arguments],
        cwd=live.workspace,
        env=environment(live),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    try:
        wait_until(live.file(until).exists)
        yield process
    finally:
        process.kill()
        process.communicate()


def wait_until(condition: Callable[[], bool]) -> None:
    """Poll until the condition holds. Raise AssertionError after `BOUND` seconds."""
    deadline = time.monotonic() + BOUND
    while not condition():
        assert time.monotonic() < deadline, f"condition not met within {BOUND:.0f} s"
        time.sleep(POLL_INTERVAL)


def environment(live: LiveAgent) -> dict[str, str]:
    """Return the whole environment of the command, which the agent inherits."""
    return {**live.launch.environment, "AGENT_MUX_CONFIG_DIR": str(live.config_directory)}
