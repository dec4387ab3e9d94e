"""What a handler raises that has no answer."""


class HandlerFailedError(Exception):
    """A handler has no answer: half a sentence says why."""
