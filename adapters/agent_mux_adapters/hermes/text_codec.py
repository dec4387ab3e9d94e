"""`hermes -z` and `hermes chat -Q`: text for people, read and never chosen.

A line may be the answer, a warning, a frame around either, or an error, and exit code 0 means nothing: `hermes -z` has
it for a refused key, too. So nothing is taken for an answer, and nothing for an end. Of what was said, only errors of
the provider can be recognised, and on standard error the session.
"""

import re
from collections.abc import Iterable

from agent_mux.actions import AnyAction
from agent_mux.adapter import CodecContext, Exit, Source, Step
from agent_mux.facts import Ignored, LogLine, SessionKnown, Trouble
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters.hermes.failures import code_of

TEXT = "text"
_SESSION = re.compile(r"session_id: (\S{1,200})")
_ERROR = re.compile(r"(?:API call failed after \d+ retries: )?HTTP \d{3}: ")


class TextCodec:
    """Reads what a one-shot run printed."""

    def __init__(self, context: CodecContext) -> None:  # as every codec
        pass

    def start(self) -> Iterable[Step]:
        """Nothing is said."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[Step]:
        """One line."""
        said = line.decode("utf-8", "replace")
        match source:
            case Source.STDOUT:
                return (Trouble(code_of(said), said) if _ERROR.match(said) else LogLine(said),)
            case Source.STDERR:
                named = _SESSION.fullmatch(said)
                return (SessionKnown(named[1]) if named is not None else LogLine(said, "stderr"),)
        return (Ignored("stdin", "our own side"),)

    def request(self, action: AnyAction) -> Iterable[Step]:
        """It can be signalled, and that is all."""
        return one_shot_action(action, "hermes chat -q")

    def finish(self, exit: Exit) -> Iterable[Step]:  # noqa: A002, ARG002  # as in the contract
        """Nothing was kept back."""
        return ()
