"""Handlers that are programs: commands and scripts. They read the call on standard input and print a decision.

Exit code 0: what was printed is the decision, nothing is no opinion. Exit code 2: no, and standard error says why.
Anything else is a failure. They get a small environment, the same wherever the call comes from.
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
"""Seconds that a handler may take."""
LARGEST_OUTPUT = 1 << 20
"""Characters that a handler may print, on either stream: what is more is no answer."""
DENIED = 2
"""Exit code of a handler that says no."""
INHERITED = ("PATH", "HOME", "USER", "LOGNAME", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "TMPDIR", "SHELL", "TZ")
"""All that a handler gets of the environment, besides `AGENT_MUX_CONFIG_DIR`: no key of the agent is in it."""
LONGEST_REASON = 2000


def run_command(registration: Registration, call: HookCall) -> HookDecision:
    """Ask a program. Raises `HandlerFailedError`."""
    return _decision(_run(registration.target, call, registration))


def run_script(registration: Registration, call: HookCall) -> HookDecision:
    """Ask `handle(call)` of a Python file, in a process of its own. Raises `HandlerFailedError`."""
    file = registration.file()
    if file is None or not file.is_file():
        raise HandlerFailedError(f"there is no file {file}")
    runner = Path(__file__).with_name("script.py")
    return _decision(_run((sys.executable, str(runner), str(file)), call, registration))


def _run(words: tuple[str, ...], call: HookCall, registration: Registration) -> ProgramResult:
    environ = {name: os.environ[name] for name in (*INHERITED, "AGENT_MUX_CONFIG_DIR") if name in os.environ}
    environ |= {"AGENT_MUX_HOOK_ID": registration.id, "AGENT_MUX_HOOK_TYPE": call.hook_type}
    cwd = call.cwd if call.cwd and Path(call.cwd).is_dir() else None
    stdin = call_to_json(call).encode("utf-8", "replace") + b"\n"
    try:
        answer = run_program(words, environ=environ, timeout=TIMEOUT, cwd=cwd, stdin=stdin)
    except AgentMuxError as error:
        late = f"it took longer than {TIMEOUT:g} s"
        raise HandlerFailedError(late if error.code == "TIMEOUT" else error.message) from error
    except ValueError as error:  # a NUL among the words
        raise HandlerFailedError(f"{words[0]} cannot be started: {error}") from error
    if max(len(answer.stdout), len(answer.stderr)) > LARGEST_OUTPUT:
        raise HandlerFailedError(f"it printed more than {LARGEST_OUTPUT} characters")
    return answer


def _decision(printed: ProgramResult) -> HookDecision:
    if printed.exit_code == DENIED:
        return HookDecision(behavior="deny", reason=printed.stderr.strip()[:LONGEST_REASON] or None)
    if printed.exit_code != 0:
        said = printed.stderr.strip().rpartition("\n")[2][:LONGEST_REASON]
        how = f"exit code {printed.exit_code}" if printed.exit_code > 0 else f"signal {-printed.exit_code}"
        raise HandlerFailedError(f"it ended with {how}{f': {said}' if said else ''}")
    try:
        return decision_from_json(printed.stdout)
    except ValueError as error:
        raise HandlerFailedError(str(error)) from error
