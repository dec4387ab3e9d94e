"""What a codec can ask the runner to do. Effects are values; `run/runner.py` alone performs them."""

from typing import Literal

import msgspec

from agent_mux.errors import ErrorCode

Delivery = Literal["applied", "queued", "merged", "unneeded"]
"""What became of what was asked for.

applied: it is done; a prompt begins its turn. queued: a prompt waits until those before it are over, or a paused run
goes on. merged: the agent was given a message for the turn that runs, and takes it in at its next step; a turn that has
no next step leaves it to a turn of its own. unneeded: there was nothing to do, as with an interruption while nothing
runs.
"""


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


class Accept(Effect, frozen=True):
    """What becomes of the message that was sent, where it is not the usual.

    Usually a `Send` during a turn waits for its end, a `Steer` is merged into it, and without a turn both begin one.
    """

    delivery: Delivery


class Refuse(Effect, frozen=True):
    """The action that was requested cannot be done by this agent, or not now. Becomes the error of the caller."""

    code: ErrorCode
    message: str
