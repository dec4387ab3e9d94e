"""The codec for a program at a terminal: wait until the screen is quiet, read it, type, wait again.

While the program draws, nothing is decided. Once it has been quiet for a moment, the screen is read as a person would
read it: a dialog is an approval or a question; a ready prompt is the end of a turn, and the text between it and our
echoed prompt is the answer. Text does not stream, tools cannot be distinguished from text, and usage is unknown.
"""

import re
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Literal

from agent_mux.sdk.codec import (
    AnswerAction,
    AnyAction,
    ApproveAction,
    Cancel,
    Close,
    CloseStdin,
    CodecContext,
    CodecOutput,
    DenyAction,
    Effect,
    Exit,
    Interrupt,
    Refuse,
    Send,
    SetApprovalMode,
    SetModel,
    Source,
    Steer,
    TerminalSize,
    WriteStdin,
)
from agent_mux.sdk.facts import (
    ApprovalRequested,
    Fact,
    Failure,
    Ignored,
    InputRequested,
    LogLine,
    Note,
    RequestResolved,
    TurnBegin,
    TurnDone,
    TurnFailed,
    TurnStopped,
    WholeText,
)
from agent_mux_adapters.terminal.answer import PromptBaseline, answer_below, capture_baseline
from agent_mux_adapters.terminal.profile import DEFAULT, Dialog, Profile, built_in, parse_profile
from agent_mux_adapters.terminal.screen import Screen

_OUTPUT = Ignored("screen", "drawn on the screen, which is read when quiet")
PASTE = "\x1b[200~{}\x1b[201~"
_PASTED = re.compile(r"\x1b\[20[01]~")
_TERMINAL_REPLIES = re.compile(r"(?:\x1b\[[?0-9;]*[cnR])+")
"""Replies of a terminal to programs that query it."""
_LAST_ROWS = 8  # rows of the screen to log when the program dies during a turn
State = Literal["starting", "idle", "working", "leaving"]


class TerminalCodec:
    """The codec of one program; without a prompt it observes recorded keys."""

    def __init__(self, profile: Profile, context: CodecContext) -> None:
        self._profile = profile
        self._is_observer = context.prompt is None
        self._interactive = context.interactive
        self._screen = Screen(TerminalSize())
        self._state: State = "starting"
        self._prompts: deque[str] = deque([context.prompt] if context.prompt and context.prompt.strip() else [])
        self._typed = ""
        """The prompt of the current turn; the answer is below its echo."""
        self._baseline = PromptBaseline((), 0)
        self._open_dialogs: dict[str, Dialog] = {}
        self._shown_dialog = ""
        """The text of the dialog on the screen, so that it is reported once."""
        self._count = 0
        self._interrupted = False
        self._sources: dict[Source, Callable[[bytes], Iterable[CodecOutput]]] = {
            Source.STDOUT: self._draw,
            Source.STDERR: lambda line: (LogLine(line.decode("utf-8", "replace"), "stderr"),),
            Source.STDIN: self._observe_keys,
        }

    # -- the codec contract

    def start(self) -> Iterable[CodecOutput]:
        """Return nothing: the program draws its screen first."""
        return ()

    def receive(self, line: bytes, source: Source) -> Iterable[CodecOutput]:
        """Read a chunk of output, stderr or recorded keys."""
        return self._sources[source](line)

    def quiet(self) -> Iterable[CodecOutput]:
        """Read the screen, which has not changed for a while: a dialog, or the end of a turn."""
        text = self._screen.text_shown
        for dialog in self._profile.dialogs:
            match = re.search(dialog.pattern, text, re.MULTILINE)
            if match is not None:
                return self._report_dialog(dialog, match)
        self._shown_dialog = ""
        settled = [RequestResolved(key, granted=False, reason="the dialog disappeared") for key in self._open_dialogs]
        self._open_dialogs.clear()
        return (*settled, *self._read_answer(text))

    def resized(self, size: TerminalSize) -> Iterable[CodecOutput]:
        """Resize the screen and note it."""
        self._screen.resize(size)
        return (Note(f"the terminal now has {size.columns} columns and {size.rows} rows", "verbose"),)

    def request(self, action: AnyAction) -> Iterable[CodecOutput]:  # noqa: PLR0911  # one return per action
        """Carry out an action of the consumer by typing keys."""
        match action:
            case Steer() if self._state == "working":
                return (Refuse("CAPABILITY_ERROR", "a terminal program takes one prompt at a time"),)
            case Send(text) | Steer(text):
                self._prompts.append(text)
                return self._type_next()
            case Interrupt():
                self._interrupted = self._state == "working"
                return self._press(self._profile.interrupt)
            case Cancel():
                self._prompts.clear()
                return self._quit()
            case Close():
                self._interactive = False
                return self._type_next()
            case ApproveAction() | DenyAction() | AnswerAction():
                return self._reply(action)
            case SetModel() | SetApprovalMode():
                return (Refuse("CAPABILITY_ERROR", "type the program's own command as a prompt"),)

    def finish(self, exit: Exit) -> Iterable[CodecOutput]:  # noqa: A002, ARG002  # as in the contract
        """Log the last rows of the screen if the program ended during a turn or before its first prompt."""
        if self._state in {"idle", "leaving"}:
            return ()
        rows = [row for row in self._screen.rows if re.search(r"\w", row)]
        return tuple(LogLine(row) for row in rows[-_LAST_ROWS:])

    # -- reading the screen

    def _draw(self, data: bytes) -> Iterable[CodecOutput]:
        reply = self._screen.feed(data)
        return (_OUTPUT, WriteStdin(reply)) if reply and not self._is_observer else (_OUTPUT,)

    def _read_answer(self, text: str) -> tuple[CodecOutput, ...]:
        is_busy = self._profile.busy is not None and _matches(self._profile.busy, text)
        if is_busy or not _matches(self._profile.ready, text):
            return ()
        if self._state == "starting":
            self._state = "idle"
            return self._type_next()
        if self._state != "working":
            return ()
        answer = answer_below(self._screen.lines, self._typed, self._baseline, self._profile)
        if not answer and not self._interrupted:
            return ()  # the answer has not begun
        self._state = "idle"
        return (*self._close_turn(answer), *self._type_next())

    def _close_turn(self, answer: str) -> Iterator[Fact]:
        failure = self._failure(answer)
        if answer and failure is None:
            yield WholeText(answer)
        if self._interrupted:
            self._interrupted = False
            yield TurnStopped()
        else:
            yield TurnDone() if failure is None else TurnFailed(failure)

    def _failure(self, answer: str) -> Failure | None:
        for failure_pattern in self._profile.failures:
            match = re.search(failure_pattern.pattern, answer, re.MULTILINE)
            if match is not None:
                return Failure(failure_pattern.code, match.groupdict().get("message") or match.group())
        return None

    # -- dialogs

    def _report_dialog(self, dialog: Dialog, match: "re.Match[str]") -> tuple[CodecOutput, ...]:
        if match.group() == self._shown_dialog:
            return ()
        self._shown_dialog = match.group()
        self._count += 1
        key = str(self._count)
        self._open_dialogs[key] = dialog
        groups = {name: (value or "").strip() for name, value in match.groupdict().items()}
        if dialog.is_question:
            return (InputRequested(key, groups.get("question") or match.group().strip()),)
        action = groups.get("action") or match.group().strip()
        return (ApprovalRequested(key, action, groups.get("detail") or match.group().strip(), dialog.risk),)

    def _reply(self, action: ApproveAction | DenyAction | AnswerAction) -> tuple[CodecOutput, ...]:
        dialog = self._open_dialogs.pop(action.request_id, None)
        self._shown_dialog = ""  # if the same dialog is on the next quiet screen, it is a new one
        if dialog is None:
            return (Refuse("INTERACTION_NOT_FOUND", "the dialog is no longer on the screen"),)
        match action:
            case ApproveAction(key, always):
                keys = dialog.always if always and dialog.always is not None else dialog.approve
                return RequestResolved(key, granted=True), *self._press(keys)
            case DenyAction(key, reason):
                return RequestResolved(key, granted=False, reason=reason), *self._press(dialog.deny)
            case AnswerAction(key, text):
                return RequestResolved(key, granted=True), *self._type_text(_printable(text))

    # -- typing keys

    def _type_next(self) -> tuple[CodecOutput, ...]:
        if self._is_observer or self._state != "idle":
            return ()
        if not self._prompts:
            return () if self._interactive else self._quit()
        prompt = _printable(self._prompts.popleft())
        self._begin_turn(prompt)
        return (TurnBegin(), *self._type_text(prompt))

    def _begin_turn(self, prompt: str) -> None:
        self._state, self._typed = "working", prompt
        self._baseline = capture_baseline(self._screen.lines, prompt, self._profile)

    def _quit(self) -> tuple[CodecOutput, ...]:
        if self._is_observer or self._state == "leaving":
            return ()
        self._state = "leaving"
        return (*self._press(self._profile.leave), CloseStdin())

    def _type_text(self, text: str) -> tuple[Effect, ...]:
        """Type a text and submit it; line breaks are pasted where the program supports it."""
        lines = text.split("\n")
        if len(lines) > 1 and self._screen.takes_pastes:
            typed = PASTE.format("\r".join(lines))
        else:
            typed = self._profile.newline.join(lines)
        return self._press(typed + self._profile.submit)

    def _press(self, keys: str) -> tuple[Effect, ...]:
        return () if self._is_observer or not keys else (WriteStdin(keys.encode("utf-8", "replace")),)

    # -- observing recorded keys

    def _observe_keys(self, data: bytes) -> Iterable[CodecOutput]:
        keys = data.decode("utf-8", "replace")
        if not self._is_observer:
            return (Ignored("stdin", "our own side"),)
        if _TERMINAL_REPLIES.fullmatch(keys):
            return (Ignored("stdin", "the terminal's replies to queries"),)
        if self._open_dialogs:
            return self._observe_reply(keys)
        if keys.endswith(self._profile.submit) and self._state in {"starting", "idle"}:
            self._begin_turn(_PASTED.sub("", keys.removesuffix(self._profile.submit)).replace("\r", "\n"))
            return (TurnBegin(),)
        self._interrupted = self._interrupted or (keys == self._profile.interrupt and self._state == "working")
        return (Ignored("stdin", "keys"),)

    def _observe_reply(self, keys: str) -> Sequence[CodecOutput]:
        key, dialog = self._open_dialogs.popitem()
        self._shown_dialog = ""
        return (RequestResolved(key, granted=keys != dialog.deny),)


class CustomTerminalCodec(TerminalCodec):
    """A codec whose profile is in the context; recordings without it use the default profile."""

    def __init__(self, context: CodecContext) -> None:
        profile_fields = context.settings.get("profile")
        super().__init__(built_in()[DEFAULT] if profile_fields is None else parse_profile(profile_fields), context)


def _printable(text: str) -> str:
    """Remove characters that a program would take for keys."""
    return "\n".join("".join(filter(str.isprintable, line)) for line in text.splitlines())


def _matches(pattern: str, text: str) -> bool:
    return re.search(pattern, text, re.MULTILINE) is not None
