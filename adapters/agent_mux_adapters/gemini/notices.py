"""The stderr of Gemini CLI: retries of model calls, the last lines of a failed run, and diagnostics.

The CLI is started with `--debug` (see `argv.py`), which prints diagnostics of everything it does; those lines are
ignored.
"""

import re
from collections import deque

from agent_mux.sdk.facts import Fact, Ignored, LogLine, RateLimited, Retrying
from agent_mux.sdk.native_json import load_object
from agent_mux_adapters._dialects.tolerant import mapping, text
from agent_mux_adapters.gemini.outcome import failure_of

_DIAGNOSTICS = (
    "[MESSAGE_BUS] ", "[DEBUG] ", "[STARTUP] ", "[Routing] ", "\t[Routing] ", "[AgentRegistry] ", "[GrepTool] ",
    "[PolicyEngine.check] ", "[Conseca] ", "[ContextBuilder] ",
    "ClearcutLogger: ", "Current heap size ", "Experiments loaded {", "  experimentIds: ", "  flags: ", "Flushing log ",
    "Hook registry initialized ", "Hook system initialized ", "Ignore file not found: ", "Session ID: ",
)  # fmt: skip
_HARMLESS = ("Warning: ", "YOLO mode is enabled", "Ripgrep is not available", *_DIAGNOSTICS)
_RETRY = re.compile(r"Attempt (\d{1,6}) failed(?:: | with )?(.*?)(?:Retrying after (\d{1,9})ms\.\.\.)?")
_GIVEN_UP = "Max attempts reached"
_COLOR = re.compile(r"\x1b\[[0-9;]*m")
_KEPT = 40  # lines; a JSON document with an error has about ten
_SHOWN = 4  # lines; the longest message of the CLI has three
_UNKNOWN_MOST = 0  # the CLI does not report its maximum (10 unless configured)


class GeminiStderr:
    """Reads the lines of stderr."""

    def __init__(self, *, show_all: bool) -> None:
        self._show_all = show_all
        self._last: deque[str] = deque(maxlen=_KEPT)

    def receive(self, line: bytes, *, in_turn: bool) -> tuple[Fact, ...]:
        """Return the facts of one line.

        Retries are read only `in_turn`, because a recording has all of stderr after the end.
        """
        text_line = line.decode("utf-8", "replace")
        if text_line.startswith(_DIAGNOSTICS) and not self._show_all:
            return (Ignored("stderr", "diagnostics of the CLI"),)
        self._last.append(text_line)
        retry = _RETRY.fullmatch(text_line) if in_turn and _GIVEN_UP not in text_line else None
        if retry is None:
            return (LogLine(text_line, "stderr"),)
        attempt, reason, delay = retry.groups()
        fact = Retrying(int(attempt), _UNKNOWN_MOST, reason.rstrip(". ") or "the model call failed", int(delay or 0))
        failure = failure_of(reason)
        return (RateLimited(failure.retry_after_ms), fact) if failure.code == "RATE_LIMITED" else (fact,)

    @property
    def final_message(self) -> str:
        """The reason why the CLI exited, as far as stderr states it."""
        document = self._document()
        if document:
            return document
        lines: deque[str] = deque(maxlen=_SHOWN)
        for line in self._last:
            if line.startswith(_HARMLESS):
                lines.clear()
            else:
                lines.append(_COLOR.sub("", line))
        return "\n".join(lines).strip()

    def _document(self) -> str:
        """Return the message of the JSON document that `--output-format json` prints on stderr."""
        lines = list(self._last)
        if "{" not in lines:
            return ""
        start = len(lines) - 1 - lines[::-1].index("{")
        document = load_object("\n".join(lines[start:]).encode("utf-8", "replace"))
        return text(mapping(mapping(document).get("error")).get("message"))
