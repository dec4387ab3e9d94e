"""Pending approvals and questions, and the responses to them. See docs/spec/run-api.md, section 3."""

import re
from collections.abc import Awaitable, Callable
from typing import Any, Literal

from agent_mux._util.frozen_dataclasses import dataclass
from agent_mux._util.pydantic_support import PydanticCompatible
from agent_mux.sdk.checked import Checked


@dataclass(frozen=True, slots=True)
class ApprovalDetail(PydanticCompatible):
    """The action that needs permission."""

    action: str
    """Kind of the action in one word or phrase, as the agent names it: often the name of the tool."""
    detail: str
    """The action itself for display: a command line, a path, or the input of the tool as JSON."""
    tool_name: str | None
    """The agent's name of the tool; None if the agent does not report it."""
    risk_level: Literal["low", "medium", "high"]
    """How much damage the action can do, as the adapter classifies it."""
    command: str | None = None
    """The command line that would run, if any."""
    paths: tuple[str, ...] = ()
    """The files concerned, as far as the agent reports them."""
    tool_call_id: str | None = None
    """Id of the tool call that waits, as in its events, if the agent reports it."""
    tool_input: Any = None
    """The input of the tool, if the agent reports it; long texts in it are cut."""
    diff: str | None = None
    """The unified diff of the files that would change; a long one is cut."""


@dataclass(frozen=True, slots=True)
class InputDetail(PydanticCompatible):
    """The question and its options."""

    question: str
    """The text of the question."""
    context: str | None
    """Further text that explains the question; None if there is none."""
    options: tuple[str, ...]
    """Labels of the answers to choose from; empty for a question that takes any text."""
    source: Literal["agent", "tool"]
    """Whether the agent asks, or one of its tools."""


@dataclass(frozen=True, slots=True)
class PendingInteraction(PydanticCompatible):
    """An approval or question that the agent waits for. Respond once, with `run.interaction.respond(id, ...)`."""

    id: str
    """Id of the request, for `respond`."""
    type: Literal["approval", "input"]
    """`approval` asks for permission, `input` for the answer to a question."""
    run_id: str
    """ULID of the run."""
    description: str
    """One line for display."""
    detail: ApprovalDetail | InputDetail
    """What is asked: `ApprovalDetail` for an approval, `InputDetail` for a question."""
    created_at: int
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True)
class Approve(Checked):
    """Allow the action; `always` also allows similar actions for the rest of the session, if supported."""

    always: bool = False
    """Whether similar actions are allowed for the rest of the session."""


@dataclass(frozen=True, slots=True)
class Deny(Checked):
    """Refuse the action, or decline to answer the question."""

    reason: str | None = None
    """Why, for the agent; None: no reason."""


@dataclass(frozen=True, slots=True)
class Text(Checked):
    """Answer a question with free text."""

    text: str
    """The answer."""


@dataclass(frozen=True, slots=True)
class Choice(Checked):
    """Answer a question with one of its options: the label, or the index from 0."""

    option: str | int
    """Label of the option, or its index from 0."""


@dataclass(frozen=True, slots=True)
class Defer:
    """Leave the request pending: it is answered later, with `run.interaction.respond`. For callbacks only."""


Response = Approve | Deny | Text | Choice | bool
"""A response to a request. `True` and `False` approve and deny."""


Responder = Callable[[PendingInteraction], Awaitable[Response | Defer] | Response | Defer]
"""A callback that answers requests. Any other value that it returns, None included, is an error of the run."""

_DIFF_HEADER = r"(?m)^(?:diff --git .*|Index: .*|={67}|--- .*\n\+\+\+ .*)$"
_DIFF_FILE = r"(?m)^(?:--- a|\+\+\+ b)/(?!dev/null\t?$)(.*?)\t?$"  # Copilot writes a/dev/null for a new file


def approval_subject(detail: str) -> str:
    """Return the detail of an approval with the names of the files instead of a diff, unless it names them already.

    Empty for a detail without content, such as the input of a tool that takes none.
    """
    header = re.search(_DIFF_HEADER, detail)
    if header is None:
        return "" if detail.strip() == "{}" else detail
    text, files = detail[: header.start()].rstrip(), dict.fromkeys(re.findall(_DIFF_FILE, detail))
    unnamed = [file for file in files if file.rpartition("/")[2] not in text]
    return " ".join(filter(None, (text, ", ".join(unnamed))))
