"""`amux hooks AGENT handle TYPE`: answer an agent's native hook in the agent's own format.

Agents read standard output and the exit code: nothing else may be written there.
"""

import contextlib
import sys
from pathlib import Path
from typing import Any

from agent_mux.errors import AgentMuxError

DENIED = 2
"""The exit code that most agents treat as a denial; used when the calling agent is unknown."""


def answer_hook(agent: str, hook_type: str, own: Path | None = None, invocation: Any = None) -> int:
    """Read the hook input from standard input and write the answer. Return the exit code of the answer."""
    from dataclasses import replace

    from agent_mux.agents.hooks.native_calls import LARGEST_INPUT, answer_native_call, has_no_handlers, native_hook_call
    from agent_mux.sdk.hooks import GUARDED_HOOK_TYPES

    stdin = b"" if sys.stdin is None else sys.stdin.buffer.read(LARGEST_INPUT + 1)
    stdin = stdin if len(stdin) <= LARGEST_INPUT else b""
    if has_no_handlers(agent, hook_type, stdin, own):
        return 0
    try:
        asked = native_hook_call(agent, hook_type)
    except AgentMuxError as error:
        from agent_mux.cli.errors import report_error

        code = report_error(error, invocation)
        return DENIED if hook_type in GUARDED_HOOK_TYPES else code
    answer = answer_native_call(replace(asked, own=own), stdin)
    for stream, text in ((sys.stderr, answer.stderr), (sys.stdout, answer.stdout)):
        if stream is not None and text:
            with contextlib.suppress(OSError):  # the agent closed the stream
                stream.write(text)
                stream.flush()
    return answer.exit_code
