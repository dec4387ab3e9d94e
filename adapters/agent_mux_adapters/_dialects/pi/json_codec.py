"""json mode, one-shot: the agent prints events and takes nothing."""

from collections.abc import Iterable

from agent_mux import facts
from agent_mux.actions import AnyAction
from agent_mux.adapter import STDOUT, CodecContext, Exit, Source, Step
from agent_mux.native_json import load_object
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters._dialects.pi.flavor import Flavor
from agent_mux_adapters._dialects.pi.reader import Reader
from agent_mux_adapters._dialects.pi.wire import UPDATE_START

Steps = tuple[Step, ...]
BLANK = (facts.Ignored("blank", "an empty line"),)


class JsonCodec:
    """One run in json mode. See `agent_mux.adapter.Codec`."""

    def __init__(self, context: CodecContext, flavor: Flavor) -> None:
        self._flavor = flavor
        self._reader = Reader(context, flavor)

    def start(self) -> Steps:
        """The prompt is on standard input already."""
        return ()

    def receive(self, line: bytes, source: Source) -> Steps:
        """One line."""
        if source is STDOUT:
            if line.startswith(UPDATE_START):
                told = self._reader.update(line)
                if told is not None:
                    return told
            return self._reader.quick(line) or self._receive(line)
        if source is Source.STDERR:
            return self._reader.complaint(line)
        return (facts.Ignored("stdin", "our own side"),)

    def _receive(self, line: bytes) -> Steps:
        native = load_object(line)
        if native is None:
            return (facts.LogLine(line.decode("utf-8", "replace")),) if line.strip() else BLANK
        return self._reader.object(native, line)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, f"this run of {self._flavor.agent}")

    def finish(self, exit: Exit) -> Steps:  # noqa: A002  # as in the contract
        """The process is gone."""
        return self._reader.finish(exit)
