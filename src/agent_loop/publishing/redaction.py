"""Replacement of known secrets in events, before they are published."""

from collections.abc import Collection, Iterable
from typing import Any

import msgspec

from agent_loop.errors import redact
from agent_loop.events import Noted
from agent_loop.messages.formatting import encode_json
from agent_loop.publishing.published import AnyEvent, loops_of, type_of


class EventRedactor:
    """Replaces secrets in the texts of events."""

    def __init__(self, secrets: Collection[str]) -> None:
        self._forms = {secret: encode_json(secret)[1:-1] for secret in secrets if secret}
        """Each secret, and how it occurs in JSON."""

    def redacted(self, event: AnyEvent) -> AnyEvent:
        """Return the event without the secrets.

        An event that cannot be searched, or whose format contains a secret, is replaced by a notice.
        """
        if not self._forms:
            return event
        try:
            data = encode_json(event)
            if not any(form in data for form in self._forms.values()):
                return event
            return msgspec.convert(_redacted_values(msgspec.json.decode(data), self._forms), type=type(event))
        except (ValueError, RecursionError):
            notice = f"an event {type_of(event)!r} is not shown: it cannot be redacted"
            return Noted(loop_id=loops_of(event)[0], text=notice)


def _redacted_values(value: Any, secrets: Iterable[str]) -> Any:
    match value:
        case str():
            return redact(value, secrets)
        case dict():
            return {redact(name, secrets): _redacted_values(each, secrets) for name, each in value.items()}
        case list():
            return [_redacted_values(each, secrets) for each in value]
        case _:
            return value
