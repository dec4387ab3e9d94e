"""What a consumer can ask of a running agent.

The codec answers each action with effects, and with facts where something is settled.
"""

import msgspec


class Action(msgspec.Struct, frozen=True, tag=True, gc=False):
    """Base of all actions. They are journaled, so they hold plain data."""


class Send(Action, frozen=True):
    """A prompt: begins the next turn, or is merged into the running one where the agent does that."""

    text: str
    own_turn: bool = False
    """It must not be merged: it waits until the running turn is over."""


class Steer(Action, frozen=True):
    """A message for the turn that runs now."""

    text: str


class Approve(Action, frozen=True):
    """Allow what `ApprovalAsked.request_id` asks."""

    request_id: str
    always: bool = False
    """And the like for the rest of the session, where the agent can."""


class Deny(Action, frozen=True):
    """Refuse what was asked, or decline to answer a question."""

    request_id: str
    reason: str | None = None


class Answer(Action, frozen=True):
    """Answer the question `InputAsked.request_id`."""

    request_id: str
    text: str


class Interrupt(Action, frozen=True):
    """Stop the current operation; the agent may live on."""


class Cancel(Action, frozen=True):
    """The run is being aborted: whatever the protocol has to say before the signals come."""


class Close(Action, frozen=True):
    """No more prompts will come: finish what was asked and leave."""


AnyAction = Send | Steer | Approve | Deny | Answer | Interrupt | Cancel | Close
