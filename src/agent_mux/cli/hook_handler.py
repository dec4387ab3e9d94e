"""`amux hooks AGENT handle TYPE`: an agent tells us what happens, and is answered in its own way.

Agents read standard output and the exit code: nothing else may be there.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

from agent_mux.errors import AgentMuxError

DENIED = 2
"""Exit code that most agents take for a no: without knowing who calls, there is no better answer."""


def answer_hook(agent: str, hook_type: str, own: Path | None = None, invocation: Any = None) -> int:
    """Read what the agent says from standard input, and answer. Returns the exit code that the answer asks for."""
    from dataclasses import replace

    from agent_mux.hooks.answering import LARGEST_INPUT, answered, nobody_asked, occasion
    from agent_mux.hooks.call import GUARDED

    stdin = b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST_INPUT + 1)
    stdin = stdin if len(stdin) <= LARGEST_INPUT else b""
    if nobody_asked(agent, hook_type, stdin, own):
        return 0
    try:
        asked = occasion(agent, hook_type)
    except AgentMuxError as error:
        from agent_mux.cli.errors import report_error

        code = report_error(error, invocation)
        return DENIED if hook_type in GUARDED else code
    answer = answered(replace(asked, own=own), stdin)
    for stream, text in ((sys.stderr, answer.stderr), (sys.stdout, answer.stdout)):
        if stream is not None and text:
            with contextlib.suppress(OSError):  # it does not listen
                stream.write(text)
                stream.flush()
    return answer.exit_code
