"""Questions of the agent, of whatever kind its request is: what is asked, and what is replied to it as a whole."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.facts import InputAsked


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """A request that asks a person one thing or several. It is answered when the last of them is."""

    asked: tuple[InputAsked, ...]
    reply: Callable[[Mapping[str, Any]], Mapping[str, Any]]
    """Request id of each question -> its answer, to the result that the agent gets."""
    decline: Mapping[str, Any] | None = None
    """The result that declines; None: as a permission is refused."""
    optional: frozenset[str] = frozenset()
    """Request ids of questions that may stay without an answer."""
    typed: Callable[[str, str], Any] = lambda _request_id, answer: answer
    """The answer to a question (by its request id) as the agent wants it; None: it cannot be that."""
    wanted: Callable[[str], str] = lambda _request_id: "a text"
    """What answers a question allows, in words."""


def choice(request_id: str, question: str, options: Mapping[str, str], context: str | None = None) -> Question:
    """A request for permission whose options (id -> name) are the answers."""
    ids = {name: option_id for option_id, name in reversed(tuple(options.items()))} | {key: key for key in options}

    def reply(answers: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"outcome": {"outcome": "selected", "optionId": answers[request_id]}}

    return Question(
        asked=(InputAsked(request_id, question, context, tuple(options.values())),),
        reply=reply,
        typed=lambda _, answer: ids.get(answer),
        wanted=lambda _: ", ".join(options.values()),
    )
