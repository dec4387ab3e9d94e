"""When the agent's standard input may be closed: when every prompt is answered, and nobody wants to say more.

With stream-json input an agent lives until its input closes.
"""


class Conversation:
    """What is still owed: by us an end, by the agent its answers. To be subclassed where turns begin by themselves."""

    def __init__(self, *, keep_open: bool) -> None:
        self.closed = False
        self._keep_open = keep_open
        self._unanswered = 0
        """Prompts sent that no turn has taken up, as far as it is known."""

    @property
    def may_close(self) -> bool:
        """Nothing more will come of its own, and nobody wants to say more."""
        return not (self.is_owed or self._keep_open or self.closed)

    @property
    def is_owed(self) -> bool:
        """The agent still works, or will by itself."""
        return self._unanswered > 0

    def finish(self) -> None:
        """Nobody will say more."""
        self._keep_open = False

    def prompt_sent(self) -> None:
        """A prompt was written."""
        self._unanswered += 1

    def prompt_answered(self) -> None:
        """A turn took up a prompt, or ended that had."""
        self._unanswered = max(self._unanswered - 1, 0)
