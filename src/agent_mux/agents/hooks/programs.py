"""Handlers that run as programs: commands and Python scripts. They read the call on stdin and print a decision.

Exit code 0: stdout contains the decision; empty output is not a decision. Exit code 2: deny, with the reason on stderr.
Any other exit code is a failure. The environment is minimal and does not depend on the caller.
"""

import os
import sys
from pathlib import Path

from agent_mux.agents.hooks.encoding import call_to_json, decision_from_json
from agent_mux.agents.hooks.registrations import HandlerFailedError, Registration
from agent_mux.errors import AgentMuxError
from agent_mux.process.command import ProgramResult, run_program
from agent_mux.sdk.hooks import HookCall, HookDecision

TIMEOUT = 30.0
"""Seconds after which a handler is ended and counts as failed."""
LARGEST_OUTPUT = 1 << 20
"""Characters that a handler may print on either stream; more is a failure."""
DENIED = 2
"""Exit code of a handler that denies the action."""
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "SHELL", "TZ")
"""Environment variables that handlers inherit, besides `AGENT_MUX_CONFIG_DIR`. They contain no API keys."""
LONGEST_REASON = 2000  # characters


def run_command(registration: Registration, call: HookCall) -> HookDecision:
    """Run a program and return its decision. Raises `HandlerFailedError`."""
    return _parse_decision(_run(registration.target, call, registration))


def run_script(registration: Registration, call: HookCall) -> HookDecision:
    """Call `handle(call)` of a Python file in a separate process. Raises `HandlerFailedError`."""
    file = registration.file()
    if file is None or not file.is_file():
        raise HandlerFailedError(f"{file} does not exist")
    runner = Path(__file__).with_name("script.py")
    return _parse_decision(_run((sys.executable, str(runner), str(file)), call, registration))


def _run(words: tuple[str, ...], call: HookCall, registration: Registration) -> ProgramResult:
    environ = {name: os.environ[name] for name in (*INHERITED, "AGENT_MUX_CONFIG_DIR") if name in os.environ}
    environ |= {"AGENT_MUX_HOOK_ID": registration.id, "AGENT_MUX_HOOK_TYPE": call.hook_type}
    cwd = call.cwd if call.cwd and Path(call.cwd).is_dir() else None
    stdin = call_to_json(call).encode("utf-8", "replace") + b"\n"
    try:
        answer = run_program(words, environ=environ, timeout=TIMEOUT, cwd=cwd, stdin=stdin)
    except AgentMuxError as error:
        timed_out = f"timed out after {TIMEOUT:g} s"
        raise HandlerFailedError(timed_out if error.code == "TIMEOUT" else error.message) from error
    except ValueError as error:  # a NUL character in an argument
        raise HandlerFailedError(f"{words[0]} cannot be started: {error}") from error
    if max(len(answer.stdout), len(answer.stderr)) > LARGEST_OUTPUT:
        raise HandlerFailedError(f"its output is longer than {LARGEST_OUTPUT} characters")
    return answer


def _parse_decision(output: ProgramResult) -> HookDecision:
    if output.exit_code == DENIED:
        return HookDecision(behavior="deny", reason=output.stderr.strip()[:LONGEST_REASON] or None)
    if output.exit_code != 0:
        last_line = output.stderr.strip().rpartition("\n")[2][:LONGEST_REASON]
        how = f"exit code {output.exit_code}" if output.exit_code > 0 else f"signal {-output.exit_code}"
        raise HandlerFailedError(f"{how}{f': {last_line}' if last_line else ''}")
    try:
        return decision_from_json(output.stdout)
    except ValueError as error:
        raise HandlerFailedError(str(error)) from error
