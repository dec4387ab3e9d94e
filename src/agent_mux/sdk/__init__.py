"""Everything that an adapter may import, besides `agent_mux.events`.

- `adapter`: the adapter value, capabilities, native protocols, spawn arguments.
- `codec`, `facts`: the codec protocol, actions, effects, and what a codec reports.
- `options`, `policy`, `interactions`: what a run is asked to do, and how its requests are answered.
- `framing`, `native_json`, `shell_commands`: reading what agents print.
- `unified_diff`: diffs of edits.
- `models`: model capabilities and prices.
- `sessions`, `session_files`, `session_databases`: reading stored sessions.
- `installation`, `config`, `hooks`, `documents`: what an agent keeps on a machine.
- `registry`: finding adapters by entry point.
"""

from agent_mux._util.files import read_text
from agent_mux._util.version import __version__
from agent_mux.errors import (
    ERROR_CODES,
    RECOVERABLE,
    AgentMuxError,
    AuthError,
    CapabilityError,
    ErrorCode,
    FieldError,
    ValidationError,
)

__all__ = [
    "ERROR_CODES",
    "RECOVERABLE",
    "AgentMuxError",
    "AuthError",
    "CapabilityError",
    "ErrorCode",
    "FieldError",
    "ValidationError",
    "__version__",
    "read_text",
]
