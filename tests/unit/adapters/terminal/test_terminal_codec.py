"""The terminal codec: how it reads quiet screens, and which keys it types."""

from collections.abc import Iterable, Sequence
from typing import Any

import pytest

from agent_mux.sdk import codec, facts
from agent_mux.sdk.codec import CloseStdin, CodecContext, CodecOutput, Exit, Refuse, Source, TerminalSize, WriteStdin

pytest.importorskip("pyte")

from agent_mux_adapters.terminal.codec import CustomTerminalCodec, TerminalCodec
from agent_mux_adapters.terminal.profile import built_in, parse_profile

CLEAR = "\x1b[H\x1b[2J"
PROFILE = parse_profile({
    "name": "test",
    "ready": r"^> $|^>$",
    "busy": "Thinking",
    "footer": "^>",
    "chrome": ["^Tip: "],
    "leave": "/quit\r",
    "interrupt": "\x1b",
    "dialogs": [
        {
            "pattern": r"Allow (?P<action>[^\n?]+)\?\n +(?P<detail>[^\n]+)",
            "approve": "y",
            "always": "a",
            "deny": "n",
            "risk": "high",
        },
        {"pattern": r"Name: (?P<question>[^\n]+)\?", "is_question": True, "deny": "\x1b"},
        {"pattern": r"Bare dialog"},
    ],
    "failures": [{"pattern": r"^Error: (?P<message>401[^\n]*)", "code": "AUTH_ERROR"}, {"pattern": r"^Fatal[^\n]*"}],
})  # fmt: skip


class TerminalConversation:
    """A codec under test, with the facts and keys that it returned."""

    def __init__(self, prompt: str | None = "hello", profile: Any = PROFILE, **context: Any) -> None:
        self.codec = TerminalCodec(profile, CodecContext(agent="terminal", protocol="test", prompt=prompt, **context))
        assert list(self.codec.start()) == []

    def draw(self, text: str) -> "TerminalConversation":
        steps = list(self.codec.receive(text.encode(), Source.STDOUT))
        assert isinstance(steps[0], facts.Ignored)
        return self

    def rest(self, text: str = "") -> list[CodecOutput]:
        """Draw a screen and let the program be quiet."""
        return list(self.draw(CLEAR + text.replace("\n", "\r\n")).codec.quiet())

    def ask(self, action: codec.AnyAction) -> list[CodecOutput]:
        return list(self.codec.request(action))

    def hear(self, keys: str) -> list[CodecOutput]:
        return list(self.codec.receive(keys.encode(), Source.STDIN))


def typed(steps: Iterable[CodecOutput]) -> str:
    return b"".join(step.data for step in steps if isinstance(step, WriteStdin)).decode()


def facts_in(steps: Iterable[CodecOutput]) -> Sequence[facts.Fact]:
    return [step for step in steps if isinstance(step, facts.Fact)]


def test_nothing_is_typed_before_the_program_is_ready() -> None:
    talk = TerminalConversation()
    assert talk.rest("loading") == []
    assert talk.rest("Thinking\n> ") == []
    assert talk.rest("> ") == [facts.TurnBegin(), WriteStdin(b"hello\r")]


def test_answer_is_between_echo_and_prompt() -> None:
    talk = TerminalConversation()
    talk.rest("Welcome\n> ")
    assert talk.rest("Welcome\n: hello\nThinking\n> ") == []
    assert talk.rest("Welcome\n: hello\n> ") == []  # no prompt is answered yet
    steps = talk.rest("Welcome\n: hello\nTip: press x\n  It is\n\n\n  so.\n> ")
    assert steps == [facts.WholeText("It is\n\nso."), facts.TurnDone(), WriteStdin(b"/quit\r"), CloseStdin()]


def test_prompts_are_typed_one_at_a_time() -> None:
    talk = TerminalConversation("one", interactive=True)
    talk.rest("> ")
    assert talk.ask(codec.Send("two")) == []
    steps = talk.rest("one\nfirst\n> ")
    assert facts_in(steps) == [facts.WholeText("first"), facts.TurnDone(), facts.TurnBegin()]
    assert typed(steps) == "two\r"
    assert facts_in(talk.rest("one\nfirst\ntwo\nsecond\n> ")) == [facts.WholeText("second"), facts.TurnDone()]
    assert typed(talk.ask(codec.Close())) == "/quit\r"
    assert talk.ask(codec.Close()) == []


def test_repeated_prompt_has_its_own_answer() -> None:
    talk = TerminalConversation("go", interactive=True)
    talk.rest("> ")
    talk.rest("go\nfirst\n> ")
    talk.ask(codec.Send("go"))
    assert talk.rest("go\nfirst\ngo\n> ") == []
    assert facts_in(talk.rest("go\nfirst\ngo\nsecond\n> "))[0] == facts.WholeText("second")


@pytest.mark.parametrize(
    ("prompt", "screen", "answer"),
    [
        ("say hello", ": say hello\nHello.\n> ", "Hello."),
        ("say hello", "| say hello |\nHello.\n> ", "Hello."),
        ("one\ntwo", ": one\n: two\nBoth.\n> ", "Both."),
        ("one\n\ntwo", ": one\n:\n: two\nBoth.\n> ", "Both."),
        ("a long prompt that is wrapped", "a long prompt\nthat is wrapped\nYes.\n> ", "Yes."),
        ("a long prompt that is cut", "a long prompt...\nYes.\n> ", "Yes."),
        ("say hello", "Hello, pushed off.\n> ", "Hello, pushed off."),  # its echo has left the screen
        ("naïve 日本", ": naïve 日本\n日本!\n> ", "日本!"),
        ("same", ": same\nsame\n> ", "same"),
    ],
)
def test_echo_is_not_part_of_the_answer(prompt: str, screen: str, answer: str) -> None:
    talk = TerminalConversation(prompt)
    talk.rest("Welcome\n> ")
    assert facts_in(talk.rest(screen))[0] == facts.WholeText(answer)


def test_control_characters_in_a_prompt_are_removed() -> None:
    assert typed(TerminalConversation("a\x03b\x1b[201~c\td\re").rest("> ")) == "ab[201~cd e\r"


def test_lines_are_pasted_where_the_program_supports_it() -> None:
    assert typed(TerminalConversation("one\ntwo").rest("> ")) == "one two\r"
    assert typed(TerminalConversation("one\ntwo").draw("\x1b[?2004h").rest("> ")) == "\x1b[200~one\rtwo\x1b[201~\r"
    assert typed(TerminalConversation("one").draw("\x1b[?2004h").rest("> ")) == "one\r"
    assert typed(TerminalConversation("one\ntwo").draw("\x1b[?2004h\x1b[?2004l").rest("> ")) == "one two\r"


# -- dialogs


DIALOG = "Allow a command?\n  rm -rf build\n> "


def dialog() -> TerminalConversation:
    talk = TerminalConversation()
    talk.rest("> ")
    assert talk.rest(DIALOG) == [facts.ApprovalRequested("1", "a command", "rm -rf build", "high")]
    return talk


@pytest.mark.parametrize(
    ("action", "keys", "granted"),
    [
        (codec.ApproveAction("1"), "y", True),
        (codec.ApproveAction("1", always=True), "a", True),
        (codec.DenyAction("1", "no"), "n", False),
    ],
)
def test_approvals_press_their_keys(action: Any, keys: str, granted: bool) -> None:
    talk = dialog()
    reason = "no" if isinstance(action, codec.DenyAction) else None
    assert talk.ask(action) == [facts.RequestResolved("1", granted, reason), WriteStdin(keys.encode())]
    assert talk.ask(action) == [Refuse("INTERACTION_NOT_FOUND", "the dialog is no longer on the screen")]


def test_always_falls_back_to_approve() -> None:
    talk = TerminalConversation()
    asked = talk.rest("Bare dialog\n> ")
    assert asked == [facts.ApprovalRequested("1", "Bare dialog", "Bare dialog", "medium")]
    assert typed(talk.ask(codec.ApproveAction("1", always=True))) == "y\r"


def test_dialog_is_reported_once_while_shown() -> None:
    talk = dialog()
    assert talk.rest(DIALOG + "\n tick") == []


def test_dialog_shown_after_its_answer_is_reported_again() -> None:
    talk = dialog()
    talk.ask(codec.ApproveAction("1"))
    assert talk.rest(DIALOG) == [facts.ApprovalRequested("2", "a command", "rm -rf build", "high")]


def test_dialog_that_disappears_is_settled() -> None:
    talk = dialog()
    assert talk.rest("Thinking\n> ") == [facts.RequestResolved("1", False, "the dialog disappeared")]


def test_questions_are_answered_with_text() -> None:
    talk = TerminalConversation()
    assert talk.rest("Name: which colour?") == [facts.InputRequested("1", "which colour")]
    assert talk.ask(codec.AnswerAction("1", "blue\x03\ngreen")) == [
        facts.RequestResolved("1", True), WriteStdin(b"blue green\r"),
    ]  # fmt: skip


def test_questions_are_declined_with_a_key() -> None:
    talk = TerminalConversation()
    talk.rest("Name: which colour?")
    assert typed(talk.ask(codec.DenyAction("1"))) == "\x1b"


# -- ends


@pytest.mark.parametrize(
    ("screen", "failure"),
    [
        ("Error: 401 no such key", facts.Failure("AUTH_ERROR", "401 no such key")),
        ("Fatal: gone", facts.Failure("AGENT_CRASH", "Fatal: gone")),
    ],
)
def test_failure_text_is_not_an_answer(screen: str, failure: facts.Failure) -> None:
    talk = TerminalConversation()
    talk.rest("> ")
    assert facts_in(talk.rest(f"hello\n{screen}\n> ")) == [facts.TurnFailed(failure)]


def test_interrupt_ends_the_turn_with_partial_answer() -> None:
    talk = TerminalConversation(interactive=True)
    talk.rest("> ")
    assert typed(talk.ask(codec.Interrupt())) == "\x1b"
    assert facts_in(talk.rest("hello\nhalf an ans\n> ")) == [facts.WholeText("half an ans"), facts.TurnStopped()]
    talk.ask(codec.Send("more"))
    talk.ask(codec.Interrupt())
    assert facts_in(talk.rest("hello\nhalf an ans\nmore\n> ")) == [facts.TurnStopped()]


def test_steering_a_turn_is_refused_and_without_one_is_a_prompt() -> None:
    talk = TerminalConversation(interactive=True)
    talk.rest("> ")
    steps = talk.ask(codec.Steer("faster"))
    assert [step.code for step in steps if isinstance(step, Refuse)] == ["CAPABILITY_ERROR"]
    talk.rest("hello\nyes\n> ")
    assert typed(talk.ask(codec.Steer("more"))) == "more\r"


def test_cancel_quits_at_once() -> None:
    talk = TerminalConversation()
    talk.rest("> ")
    talk.ask(codec.Send("more"))
    assert talk.ask(codec.Cancel()) == [WriteStdin(b"/quit\r"), CloseStdin()]
    assert talk.ask(codec.Cancel()) == []
    assert list(talk.codec.finish(Exit(code=0))) == []


def test_last_rows_are_logged_after_a_crash() -> None:
    talk = TerminalConversation()
    talk.draw("module not found\r\n")
    assert list(talk.codec.finish(Exit(code=1))) == [facts.LogLine("module not found")]
    talk = TerminalConversation()
    talk.rest("> ")
    talk.draw("────\r\nat work >")
    assert list(talk.codec.finish(Exit(code=0))) == [facts.LogLine("at work >")]
    talk = TerminalConversation(interactive=True)
    talk.rest("> ")
    talk.rest("hello\nyes\n> ")
    assert list(talk.codec.finish(Exit(code=0))) == []


def test_resize_is_noted_and_the_screen_rewrapped() -> None:
    talk = TerminalConversation()
    assert facts_in(talk.codec.resized(TerminalSize(10, 4))) == [
        facts.Note("the terminal now has 10 columns and 4 rows", "verbose")
    ]
    talk.rest("> ")
    talk.draw(CLEAR + "hello\r\nabcdefghijklm\r\n> ")
    assert facts_in(talk.codec.quiet())[0] == facts.WholeText("abcdefghij\nklm")


# -- observing


def test_observer_types_nothing_and_reads_recorded_keys() -> None:
    talk = TerminalConversation(prompt=None)
    assert talk.draw("\x1b[c").rest("> ") == []
    assert isinstance(talk.hear("\x1b[?6c")[0], facts.Ignored)
    assert talk.hear("\x1b[200~one\rtwo\x1b[201~\r") == [facts.TurnBegin()]
    assert talk.rest(DIALOG) == [facts.ApprovalRequested("1", "a command", "rm -rf build", "high")]
    assert isinstance(talk.hear("\x1b[1;1R")[0], facts.Ignored)  # a reply of the terminal, no key
    assert talk.hear("n") == [facts.RequestResolved("1", False)]
    assert facts_in(talk.rest("one\ntwo\nNot done.\n> ")) == [facts.WholeText("Not done."), facts.TurnDone()]
    assert talk.hear("more\r") == [facts.TurnBegin()]
    assert isinstance(talk.hear("\x1b")[0], facts.Ignored)
    assert facts_in(talk.rest("more\nhalf\n> ")) == [facts.WholeText("half"), facts.TurnStopped()]


def test_recording_without_profile_uses_the_line_profile() -> None:
    codec = CustomTerminalCodec(CodecContext(agent="terminal", protocol="custom"))
    assert codec._profile == built_in()["line"]


# -- built-in profiles


@pytest.mark.parametrize(
    ("profile", "screen", "expected"),
    [
        ("line", "Remove it? [y/N]", facts.ApprovalRequested("1", "Remove it?", "[y/N]", "medium")),
        ("line", "Go on (yes/no):", facts.ApprovalRequested("1", "Go on", "(yes/no)", "medium")),
        (
            "screen",
            "╭────╮\n│ Run this?\n│\n│ make clean\n│\n│ \u276f 1. Yes\n│   2. No",
            facts.ApprovalRequested("1", "│ Run this?", "│\n│ make clean\n│", "medium"),
        ),
        ("screen", "Overwrite a.txt? [Y/n]", facts.ApprovalRequested("1", "Overwrite a.txt?", "[Y/n]", "medium")),
    ],
)
def test_common_dialogs_are_recognized(profile: str, screen: str, expected: facts.Fact) -> None:
    assert TerminalConversation(profile=built_in()[profile]).rest(screen) == [expected]


@pytest.mark.parametrize("busy", ["Working (esc to interrupt)", "⠋ thinking", "press Ctrl+C to stop", "Esc to cancel"])
def test_screen_profile_recognizes_busy_programs(busy: str) -> None:
    talk = TerminalConversation(profile=built_in()["screen"])
    assert talk.rest(f"hello\n{busy}") == []
    assert typed(talk.rest("Welcome\n│ >   │")) == "hello\r"


@pytest.mark.parametrize("prompt", ["$ ", ">>> ", "user@host:~$ ", "sqlite> ", "\u276f "])
def test_line_profile_recognizes_prompts(prompt: str) -> None:
    assert typed(TerminalConversation(profile=built_in()["line"]).rest(f"Welcome\n{prompt}")) == "hello\r"
