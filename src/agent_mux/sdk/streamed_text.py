"""Compare a text that was streamed in fragments with its complete form, where other parts of secrets are redacted."""

import re

_REDACTED = re.compile(r"\*\d+\*+|\*{3,}|\*\d*\Z")


def missing_text(complete: str, streamed: str) -> str | None:
    """Return the end of the complete text that was not streamed; None if its beginning is not the streamed text.

    Each line of an agent is redacted by itself. A secret is therefore whole in the joined fragments and replaced by a
    placeholder of the same length in the complete text, or replaced in one of them in part. That is no difference.
    """
    size = len(streamed)
    if complete.startswith(streamed):
        return complete[size:]
    if len(complete) < size or ("***" not in complete and "***" not in streamed):
        return None
    position = 0
    spans = sorted(found.span() for text in (complete, streamed) for found in _REDACTED.finditer(text))
    for start, end in spans:
        if start > position and complete[position : min(start, size)] != streamed[position:start]:
            return None
        position = max(position, end)
    return complete[size:] if complete[position:size] == streamed[position:] else None
