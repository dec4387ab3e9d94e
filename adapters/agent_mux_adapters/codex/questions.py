"""What the app-server can ask a person, as one shape: how it is shown, and what each reply is."""

from typing import Any

import msgspec

from agent_mux.facts import ApprovalAsked, InputAsked


class Form(msgspec.Struct):
    """The answers to a question's fields so far."""

    fields: dict[str, Any]
    """The schema of each field."""
    by_tool: bool
    """It is an MCP server's form, else the agent's own question."""
    answers: dict[str, Any] = {}


class Question(msgspec.Struct, kw_only=True):
    """A request of the app-server that a person has to decide."""

    asked: tuple[ApprovalAsked | InputAsked, ...]
    """One approval, or one question per field of a form."""
    item_id: str | None = None
    """The item that waits for it."""
    accept: Any = None
    """The result that approves."""
    accept_always: Any = None
    """The result that approves for the rest of the session; None: the same as `accept`."""
    decline: Any = None
    """The result that refuses, or leaves a form unanswered."""
    form: Form | None = None
