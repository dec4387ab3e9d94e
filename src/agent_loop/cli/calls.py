"""Tool calls of a run as facts of the event contract: what is open, what it printed, what it did to files.

Models use call ids again, in later turns and after an answer that was abandoned; in a stream of events each call has an
id of its own. So an id that was used before gets a number here.
"""

from collections.abc import Iterator

from agent_loop.events import ToolCalled, ToolCallEnd, ToolInputDelta, ToolResulted, ToolUpdate
from agent_loop.messages import Image, Text, ToolMessage
from agent_loop.tools import effects
from agent_mux import facts

ABANDONED = "abandoned: the model broke off before the call was complete"
NOT_TAKEN_UP = "the call was never carried out"
NO_RESULT = "the call ended without a result"


class Calls:
    """The calls of one conversation."""

    def __init__(self) -> None:
        self._used: set[str] = set()
        self._ids: dict[str, str] = {}
        """Native id -> id in the stream, of the calls that are open."""
        self._streaming: dict[str, str] = {}
        """Native id -> name, of those whose input is not complete."""
        self._taken_up: set[str] = set()
        """Native ids of calls that were carried out: those that are seen again get another one."""
        self._commands: set[str] = set()
        """Native ids of the open calls that run one."""

    def id_of(self, native_id: str) -> str:
        """The id of a call in the stream."""
        known = self._ids.get(native_id)
        if known is not None:
            return known
        name, number = native_id, 2
        while name in self._used or not name:
            name, number = f"{native_id or 'call'}~{number}", number + 1
        self._used.add(name)
        self._ids[native_id] = name
        return name

    def add_input(self, event: ToolInputDelta) -> Iterator[facts.Fact]:
        """The model writes the arguments."""
        if event.call_id not in self._ids:
            self._streaming[event.call_id] = event.name
            yield facts.ToolBegin(self.id_of(event.call_id), event.name)
        yield facts.ToolInput(self.id_of(event.call_id), event.delta)

    def make_ready(self, event: ToolCalled) -> Iterator[facts.Fact]:
        """The arguments are known."""
        call = event.call
        if call.id not in self._ids:
            self._adopt(call.id, call.name)
        self._streaming.pop(call.id, None)
        self._taken_up.add(call.id)
        shell = None
        if event.shell_command is not None:
            shell = facts.Shell(event.shell_command)
            self._commands.add(call.id)
        yield facts.ToolReady(self.id_of(call.id), call.name, call.arguments, shell)

    def add_output(self, event: ToolUpdate) -> Iterator[facts.Fact]:
        """A command printed something. Parts of other results come again with the whole: they say nothing here."""
        if event.call_id in self._commands:
            yield facts.ToolOutput(self.id_of(event.call_id), event.text, event.stream)

    def end(self, event: ToolResulted) -> Iterator[facts.Fact]:
        """The result is there."""
        message = event.message
        self._streaming.pop(message.tool_call_id, None)
        ran = next((one for one in event.effects if isinstance(one, effects.CommandRan)), None)
        shown = shown_of(message)
        # To the model it is a result like any other; to whoever reads the events, a command that failed is an error.
        has_failed = message.is_error or (ran is not None and ran.exit_code != 0)
        yield facts.ToolDone(
            self.id_of(message.tool_call_id),
            output=None if has_failed else shown,
            error=(shown or "the tool failed") if has_failed else None,
            duration_ms=event.duration_ms,
            stdout=ran.stdout if ran is not None else None,
            stderr=ran.stderr if ran is not None else None,
            exit_code=ran.exit_code if ran is not None else None,
            files=tuple(file for one in event.effects if (file := _file(one)) is not None),
            name=message.name,
        )
        self._forget(message.tool_call_id)

    def is_over(self, event: ToolCallEnd) -> Iterator[facts.Fact]:
        """The call is over, whether it had a result or not."""
        if event.call_id in self._ids:
            error = NO_RESULT if event.status == "error" else None
            yield facts.ToolDone(self.id_of(event.call_id), error=error, name=event.name)
            self._forget(event.call_id)

    def abandon(self, why: str) -> Iterator[facts.Fact]:
        """No call whose arguments are incomplete will be carried out."""
        for native_id, name in list(self._streaming.items()):
            yield facts.ToolDone(self.id_of(native_id), error=why, name=name)
            self._forget(native_id)

    def forget_all(self) -> None:
        """The turn is over, and the assembler closes what is open in it."""
        self._ids.clear()
        self._streaming.clear()
        self._commands.clear()

    def _adopt(self, native_id: str, name: str) -> None:
        """A call that got another id after its input was streamed: the loop lets none be used twice."""
        begun = [one for one, its_name in self._streaming.items() if its_name == name]
        if begun:
            first = min(begun, key=lambda one: one not in self._taken_up)
            del self._streaming[first]
            self._ids[native_id] = self._ids.pop(first)

    def _forget(self, native_id: str) -> None:
        self._ids.pop(native_id, None)
        self._streaming.pop(native_id, None)
        self._commands.discard(native_id)


def shown_of(message: ToolMessage) -> str:
    """What the model is shown of a result, as text."""
    return "\n".join(
        block.text if isinstance(block, Text) else f"[image: {block.mime_type}]"
        for block in message.content
        if isinstance(block, Text | Image)
    )


def _file(effect: effects.ToolEffect) -> facts.FileEffect | None:
    match effect:
        case effects.FileRead(path):
            return facts.FileRead(path)
        case effects.FileWritten(path, byte_count, created):
            return facts.FileWritten(path, byte_count, created)
        case effects.FilePatched(path, diff):
            return facts.FilePatched(path, diff)
        case effects.FileDeleted(path):
            return facts.FileDeleted(path)
        case effects.CommandRan():
            return None
