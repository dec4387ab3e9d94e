"""`hermes -z` and `hermes chat -Q`: text for people. Recordings of it are read; runs never use it.

A line may be part of the answer, a warning, a frame around either, or an error, and exit code 0 proves nothing: `hermes
-z` exits with it after a refused key, too. So no line counts as answer or as closing message. Only errors of the
provider are recognised, and on stderr the id of the session.
"""

import re
from collections.abc import Iterable

from agent_mux.sdk.codec import AnyAction, CodecContext, CodecOutput, Exit, Source
from agent_mux.sdk.facts import Ignored, LogLine, RecoverableError, SessionKnown
from agent_mux_adapters._dialects.actions import one_shot_action
from agent_mux_adapters.hermes.outcome import code_of

TEXT = "text"
_SESSION = re.compile(r"session_id: (\S{1,200})")
_ERROR = re.compile(r"(?:API call failed after \d+ retries: )?HTTP \d{3}: ")


class HermesTextCodec:
    """Codec of the text that a one-shot run prints."""

    def __init__(self, context: CodecContext) -> None:  # as every codec
        pass

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the prompt is on the command line."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read one line: an error of the provider, the session id, or text that is kept as a log."""
        content = line.decode("utf-8", "replace")
        match source:
            case Source.STDOUT:
                return (RecoverableError(code_of(content), content) if _ERROR.match(content) else LogLine(content),)
            case Source.STDERR:
                session = _SESSION.fullmatch(content)
                return (SessionKnown(session[1]) if session is not None else LogLine(content, "stderr"),)
        return (Ignored("stdin", "our own side"),)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:
        """Return the effects of an action: the program can be signalled, and reads nothing."""
        return one_shot_action(action, "hermes chat -q")

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Return nothing: no fact is held back until the exit."""
        return ()
