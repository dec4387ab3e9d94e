"""What a codec can ask the runner to do. Effects are values; `run/runner.py` alone performs them."""

import msgspec

from agent_mux.errors import ErrorCode


class Effect(msgspec.Struct, frozen=True, gc=False):
    """Base of all effects."""


class WriteStdin(Effect, frozen=True):
    """Send these bytes to the agent, after all that was sent before."""

    data: bytes


class CloseStdin(Effect, frozen=True):
    """Close the agent's standard input once everything before it is written. Told twice, the second does nothing."""


class SignalGroup(Effect, frozen=True):
    """Send a signal (its number) to the agent's process group."""

    signal: int


class Refuse(Effect, frozen=True):
    """The action that was requested cannot be done by this agent, or not now. Becomes the error of the caller."""

    code: ErrorCode
    message: str
