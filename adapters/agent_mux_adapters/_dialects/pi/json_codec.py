"""The codec of json mode, one-shot: the agent prints events and reads nothing."""

from collections.abc import Iterable

from agent_mux.sdk import facts
from agent_mux.sdk.codec import STDOUT, AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.reader import PiReader
from agent_mux_adapters._dialects.pi.wire import UPDATE_START

Steps = tuple[CodecOutput, ...]
BLANK = (facts.Ignored("blank", "an empty line"),)


class PiJsonCodec:
    """The codec of one run in json mode. See `agent_mux.sdk.codec.Codec`."""

    def __init__(self, context: CodecContext, flavor: Flavor) -> None:
        self._flavor = flavor
        self._reader = PiReader(context, flavor)

    def start(self) -> Steps:
        """Return nothing: the prompt is on standard input already."""
        return ()

    def receive(self, line: bytes, source: Source) -> Steps:
        """Read one line; stderr becomes log lines."""
        if source is STDOUT:
            if line.startswith(UPDATE_START):
                emitted = self._reader.update(line)
                if emitted is not None:
                    return emitted
            return self._reader.read_bulky(line) or self._receive(line)
        if source is Source.STDERR:
            return self._reader.read_stderr(line)
        return (facts.Ignored("stdin", "our own side"),)

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),) if line.strip() else BLANK
        return self._reader.read_object(native, line)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Interrupt by a signal; refuse further prompts."""
        return one_shot_action(action, f"this run of {self._flavor.agent}")

    def finish(self, exit: Exit) -> Steps:  # noqa: A002  # as in the contract
        """Return the facts that follow from the exit, if the agent printed no end of its turn."""
        return self._reader.finish(exit)
