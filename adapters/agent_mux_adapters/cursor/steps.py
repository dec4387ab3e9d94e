"""Where model calls begin. The stream does not say it; `model_call_id` and the order of lines show it.

Lines of one model call share its id, but its thinking, its fragments and the last message of a turn have none.
"""

from agent_mux import facts


class Steps:
    """The model call that is going on."""

    def __init__(self) -> None:
        self._begun = False
        self._call_id = ""
        """Of the model call; empty while no line has told."""
        self._returned = False
        """A tool returned: whatever the model says now, it says in another call."""

    def content(self, call_id: str) -> tuple[facts.Fact, ...]:
        """The model says something or calls a tool; `call_id` where the line tells it. Says when a call begins."""
        is_other = bool(call_id and self._call_id and call_id != self._call_id)
        is_same = bool(call_id) and call_id == self._call_id
        if self._begun and not is_other and (is_same or not self._returned):
            self._call_id = self._call_id or call_id
            return ()
        self._begun, self._returned, self._call_id = True, False, call_id
        return (facts.StepBegin(),)

    @property
    def goes_on(self) -> bool:
        """Content without an id belongs to the call that was begun."""
        return self._begun and not self._returned

    def named(self, call_id: str) -> None:
        """The text of the call that goes on is repeated, with its id."""
        if self.goes_on:
            self._call_id = self._call_id or call_id

    def tool_returned(self) -> None:
        """A tool call is over."""
        self._returned = True

    def turn_over(self) -> None:
        """What follows belongs to another turn."""
        self._begun = self._returned = False
        self._call_id = ""
