"""Standard error of Gemini CLI: retries of model calls, the last words of a run that failed, and diagnostics.

The CLI is started with `--debug` (see `argv.py`), which makes it talk about everything it does; those lines are
ignored.
"""

import re
from collections import deque

from agent_mux.facts import Fact, Ignored, LogLine, RateLimited, Retrying
from agent_mux.native_json import load_object
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
_KEPT = 40  # lines: a JSON document with an error has about ten
_SHOWN = 4  # lines; the longest message of the CLI has three
_UNKNOWN_MOST = 0  # the CLI does not say how often it tries (10 times, unless settings say otherwise)


class GeminiStderr:
    """Reads the lines of standard error."""

    def __init__(self, *, show_all: bool) -> None:
        self._show_all = show_all
        self._last: deque[str] = deque(maxlen=_KEPT)

    def receive(self, line: bytes, *, in_turn: bool) -> tuple[Fact, ...]:
        """One line. A retry is told only `in_turn`: a recording has all of standard error after the end."""
        words = line.decode("utf-8", "replace")
        if words.startswith(_DIAGNOSTICS) and not self._show_all:
            return (Ignored("stderr", "diagnostics of the CLI"),)
        self._last.append(words)
        retry = _RETRY.fullmatch(words) if in_turn and _GIVEN_UP not in words else None
        if retry is None:
            return (LogLine(words, "stderr"),)
        attempt, reason, delay = retry.groups()
        fact = Retrying(int(attempt), _UNKNOWN_MOST, reason.rstrip(". ") or "the model call failed", int(delay or 0))
        failure = failure_of(reason)
        return (RateLimited(failure.retry_after_ms), fact) if failure.code == "RATE_LIMITED" else (fact,)

    @property
    def last_words(self) -> str:
        """Why the CLI left, as far as it said so here."""
        document = self._document()
        if document:
            return document
        said: deque[str] = deque(maxlen=_SHOWN)
        for line in self._last:
            if line.startswith(_HARMLESS):
                said.clear()
            else:
                said.append(_COLOR.sub("", line))
        return "\n".join(said).strip()

    def _document(self) -> str:
        """The message in the JSON document that `--output-format json` prints here."""
        lines = list(self._last)
        if "{" not in lines:
            return ""
        start = len(lines) - 1 - lines[::-1].index("{")
        document = load_object("\n".join(lines[start:]).encode("utf-8", "replace"))
        return text(mapping(mapping(document).get("error")).get("message"))
