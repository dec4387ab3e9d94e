"""Which step answers which request."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_mux.testing.model_server.loading import fill_in
from agent_mux.testing.model_server.script import Script, Step

RECENT_MESSAGES = 3  # a tool result, what came with it and what it answers
OPENING_MESSAGES = 2  # a prompt may come behind a message of context


@dataclass(frozen=True, slots=True)
class Conversation:
    """What a request says, as JSON text for regexes to search in."""

    recent: str
    opening: str
    whole: str
    model: str
    has_tools: bool

    @classmethod
    def of(cls, body: Any, model: str | None = None) -> "Conversation":
        """Read a request of any API; anything may be missing. `model`: where the request says it elsewhere."""
        request = body if isinstance(body, Mapping) else {}
        model = model or str(request.get("model") or "")
        messages = request.get("messages") or request.get("input") or request.get("contents") or []
        messages = messages if isinstance(messages, list) else [{"role": "user", "content": messages}]
        from_user = [message for message in messages if isinstance(message, Mapping) and message.get("role") == "user"]
        return cls(
            recent=json.dumps({"m": messages[-RECENT_MESSAGES:], "model": model}),
            opening=json.dumps(from_user[:OPENING_MESSAGES]),
            whole=json.dumps(messages),
            model=model,
            has_tools=bool(request.get("tools")),
        )


@dataclass(frozen=True, slots=True)
class Choice:
    """The answer to one request."""

    step: Step
    index: int | None
    """Its place in `Script.steps`; None: `aux` or `default`."""


class Matcher:
    """Hands out the steps of a script, in order, each as often as it may be used."""

    def __init__(self, script: Script) -> None:
        self._script = script
        self._used = [0] * len(script.steps)

    def choose(self, conversation: Conversation, *, aux: bool) -> Choice:
        """The first step that fits and is not used up; else `aux` or `default`."""
        for index, step in enumerate(self._script.steps):
            if step.is_aux == aux and not self._is_used_up(index) and _fits(step, conversation):
                self._used[index] += 1
                return Choice(fill_in(step, conversation.whole), index)
        fallback = self._script.aux if aux else self._script.default
        return Choice(fill_in(fallback, conversation.whole), None)

    @property
    def unused(self) -> tuple[Step, ...]:
        """Steps that have answered nothing yet."""
        return tuple(step for step, used in zip(self._script.steps, self._used, strict=True) if not used)

    def _is_used_up(self, index: int) -> bool:
        repeat = self._script.steps[index].repeat
        return repeat is not True and self._used[index] >= (repeat or 1)


def _fits(step: Step, conversation: Conversation) -> bool:
    searches = ((step.when, conversation.recent), (step.first, conversation.opening), (step.model, conversation.model))
    return all(pattern is None or re.search(pattern, text) for pattern, text in searches)
