"""Rendering for people. Each test is a transcript: events in, both streams out."""

from collections.abc import Iterable
from typing import Any

import pytest

from agent_mux import events as ev
from agent_mux.api.event_lines import event_line
from agent_mux.cli.layout import cell_width
from agent_mux.cli.output import Screen
from agent_mux.cli.rendering import SHOWN_LINES, Renderer
from agent_mux.cli.terminal import Palette
from agent_mux.cli.views import HumanView, JsonView, QuietView, summary_lines
from agent_mux.events import ALL_EVENTS, Accumulated, BaseEvent, decode_event
from agent_mux.run.ledger import Ledger
from agent_mux.run.result import Denial, RunError, RunResult, TokenUsage

WHO = ("0" * 26, "claude", 1)
SEEN = Accumulated.of("so far")


def message(*deltas: str, subagent_id: str | None = None) -> list[BaseEvent]:
    inside = {"subagent_id": subagent_id}
    return [
        ev.MessageStartEvent(*WHO, **inside),
        *(ev.TextDeltaEvent(*WHO, delta, SEEN, **inside) for delta in deltas),
        ev.MessageStopEvent(*WHO, "".join(deltas), **inside),
    ]


def shown(events: Iterable[BaseEvent], **screen: Any) -> tuple[str, str]:
    renderer = Renderer(Screen(**screen))
    pieces = [piece for event in events for piece in renderer.show(event)] + renderer.finish()
    return tuple("".join(text for stream, text in pieces if stream == wanted) for wanted in ("out", "err"))  # type: ignore[return-value]


def interleaved(events: Iterable[BaseEvent], **screen: Any) -> str:
    renderer = Renderer(Screen(**screen))
    return "".join(text for event in events for _, text in renderer.show(event))


def test_only_the_answer_is_on_standard_output() -> None:
    out, err = shown(
        [
            ev.SessionStartEvent(*WHO, "S1", False),
            ev.TurnStartEvent(*WHO, 0),
            *message("Hel", "lo"),
            ev.ToolCallReadyEvent(*WHO, "t", "Read", {"file_path": "/x"}),
            *message("Bye\n"),
        ]
    )
    assert out == "Hello\n\nBye\n"
    assert err == "claude, session S1\n* Read /x\n"


def test_text_is_verbatim_in_a_pipe_and_sanitized_on_a_terminal() -> None:
    hostile = message("a\x1b[2Jb\u202e")
    assert shown(hostile)[0] == "a\x1b[2Jb\u202e\n"
    assert shown(hostile, out_is_terminal=True)[0] == "ab\n"


def test_on_one_terminal_a_line_never_begins_in_the_middle_of_another() -> None:
    start, delta, stop = message("half a line")
    log = ev.LogEvent(*WHO, "stderr", "noise")
    thinking = [ev.ThinkingStartEvent(*WHO), ev.ThinkingDeltaEvent(*WHO, "hm", SEEN)]
    screen = {"out_is_terminal": True, "shared": True}
    assert interleaved([start, delta, log, stop], **screen) == "half a line\nclaude: noise\n"
    assert interleaved([*thinking, log], **screen) == "hm\nclaude: noise\n"
    assert interleaved([*thinking, start, delta, stop], **screen) == "hm\nhalf a line\n"


def test_thinking_is_streamed_dimmed() -> None:
    thought = [
        ev.ThinkingStartEvent(*WHO),
        ev.ThinkingDeltaEvent(*WHO, "first\n", SEEN),
        ev.ThinkingDeltaEvent(*WHO, "\x1b[8mthen", SEEN),
        ev.ThinkingStopEvent(*WHO, "first\nthen"),
    ]
    assert shown(thought) == ("", "first\nthen\n")
    assert shown(thought, palette=Palette(enabled=True))[1] == "\x1b[2mfirst\x1b[0m\n\x1b[2mthen\x1b[0m\n"


def command(output: list[str], exit_code: int) -> list[BaseEvent]:
    failed: BaseEvent = ev.ToolErrorEvent(*WHO, "t", "Bash", "Exit code 2")
    return [
        ev.ToolCallReadyEvent(*WHO, "t", "Bash", {"command": "make"}),
        ev.ShellStartEvent(*WHO, "make", "/"),
        *(ev.ShellStdoutDeltaEvent(*WHO, chunk) for chunk in output),
        ev.ShellExitEvent(*WHO, exit_code, 1500),
        failed if exit_code else ev.ToolResultEvent(*WHO, "t", "Bash", "".join(output), 1500),
    ]


def test_a_command_shows_its_output_by_line_and_its_failure_once() -> None:
    assert shown(command(["on", "e\ntwo\x1b[1m\n", "rest"], 2))[1] == (
        "* Bash make\n  | one\n  | two\n  | rest\nx exit code 2 after 1.5 s\n"
    )
    assert shown(command(["fine\n"], 0))[1] == "* Bash make\n  | fine\n"


def test_long_output_is_cut_and_says_how_much_is_missing() -> None:
    _, err = shown(command([f"line {number}\n" for number in range(100)], 0))
    lines = err.splitlines()
    assert len(lines) == 1 + SHOWN_LINES + 1
    assert lines[-1] == f"  | ... {100 - SHOWN_LINES} more lines"


def test_an_endless_line_is_not_kept() -> None:
    _, err = shown(command(["x" * 1_000_000] * 3, 0), width=40)
    assert max(map(len, err.splitlines())) <= 40


def test_a_failure_without_a_command_is_shown() -> None:
    failed = ev.ToolErrorEvent(*WHO, "t", "Edit", "old_string\nnot found")
    assert shown([*command([], 2), ev.ToolCallReadyEvent(*WHO, "u", "Edit", {}), failed])[1].endswith(
        "* Edit\nx Edit old_string not found\n"
    )


def test_the_inside_of_a_subagent_is_indented_on_standard_error() -> None:
    inside = {"subagent_id": "s"}
    out, err = shown(
        [
            ev.SubagentSpawnEvent(*WHO, agent_name="Explore", prompt="find it", **inside),
            *message("a thought\nof two lines", subagent_id="s"),
            ev.ThinkingDeltaEvent(*WHO, "secret", SEEN, **inside),
            ev.ToolCallReadyEvent(*WHO, "t", "Grep", {"pattern": "x"}, **inside),
            ev.SubagentResultEvent(*WHO, agent_name="Explore", summary="found", **inside),
        ]
    )
    assert out == ""
    assert err == "* sub-agent Explore find it\n  a thought\n  of two lines\n  * Grep x\n+ sub-agent Explore found\n"


@pytest.mark.parametrize(
    ("event", "line"),
    [
        (ev.FileCreateEvent(*WHO, "a.py", 12), "+ created a.py 12 bytes"),
        (ev.FileWriteEvent(*WHO, "a.py", 1), "+ wrote a.py 1 byte"),
        (ev.FilePatchEvent(*WHO, "a.py", "--- a/a.py\n+++ b/a.py\n@@ -1 +1 @@\n-a\n+b\n"), "+ changed a.py +1 -1"),
        (ev.FileDeleteEvent(*WHO, "a.py"), "+ deleted a.py"),
        (ev.McpToolCallStartEvent(*WHO, "t", "db", "query", {"query": "select 1"}), "* db.query select 1"),
        (ev.McpToolErrorEvent(*WHO, "t", "db", "query", "down"), "x db.query down"),
        (ev.ApprovalRequestEvent(*WHO, "i", "run", "rm -rf\n/", "high"), "? run (high risk) rm -rf /"),
        (ev.ApprovalGrantedEvent(*WHO, "i"), "+ allowed"),
        (ev.ApprovalDeniedEvent(*WHO, "i", "no"), "x denied no"),
        (ev.InputRequiredEvent(*WHO, "i", "which?", "agent"), "? which?"),
        (ev.RetryEvent(*WHO, 1, 0, "overloaded", 500), "! retry 1 in 500 ms: overloaded"),
        (ev.RetryEvent(*WHO, 1, 3, "overloaded", 0), "! retry 1 of 3: overloaded"),
        (ev.RateLimitedEvent(*WHO, 2000), "! rate limited; retry after 2.0 s"),
        (ev.ContextLimitWarningEvent(*WHO, 90, 100, 90.0), "! the context window is 90 % full"),
        (ev.ContextCompactedEvent(*WHO, "s", 0), "! the context was compacted"),
        (ev.ErrorEvent(*WHO, "AGENT_CRASH", "hiccup", True), "! hiccup AGENT_CRASH"),
        (ev.DebugEvent(*WHO, "warn", "lost"), "! lost"),
        (ev.PluginErrorEvent(*WHO, "p", "lint", "broken"), "x plugin lint broken"),
        (ev.SkillInvokedEvent(*WHO, "pdf"), "* skill pdf"),
        (ev.ImageOutputEvent(*WHO, mime_type="image/png", file_path="a.png"), "+ image a.png"),
        (ev.SessionStartEvent(*WHO, "S", True), "claude, session S, resumed"),
        (ev.SessionStartEvent(*WHO, "S", False, "R"), "claude, session S, forked from R"),
        (ev.TurnStartEvent(*WHO, 1), "turn 2"),
        (ev.PausedEvent(*WHO), "! paused"),
        (ev.LogEvent(*WHO, "stderr", "a\x1b[1mb"), "claude: ab"),
    ],
)  # fmt: skip
def test_one_event_is_one_line(event: BaseEvent, line: str) -> None:
    assert shown([event]) == ("", line + "\n")


def test_a_prompted_request_is_not_rendered_again() -> None:
    asked = ev.ApprovalRequestEvent(*WHO, "i", "run", "ls", "low")
    assert shown([asked], asks=True) == ("", "")
    assert shown([asked], asks=False)[1] == "? run (low risk) ls\n"


def test_redundant_events_are_not_rendered() -> None:
    quiet: list[BaseEvent] = [
        ev.TurnStartEvent(*WHO, 0),
        ev.FileReadEvent(*WHO, "a"),
        ev.ToolResultEvent(*WHO, "t", "Read", "x", 1),
        ev.ErrorEvent(*WHO, "AGENT_CRASH", "the end", False),
        ev.CrashEvent(*WHO, 1, ""),
        ev.AbortedEvent(*WHO),
        ev.DebugEvent(*WHO, "info", "detail"),
    ]
    assert shown(quiet) == ("", "")
    assert shown(quiet, verbose=True)[1] == "detail\n"


def test_lines_fit_the_screen() -> None:
    ready = ev.ToolCallReadyEvent(*WHO, "t", "Tool" * 50, {"command": "x" * 500})
    for width in (1, 20, 80, 200):
        assert len(shown([ready], width=width)[1].rstrip("\n")) <= max(width, 20) + 24


HOSTILE = "evil\x1b]0;t\x07\x1b[2J\r\x9b1m\u202e\x00"


@pytest.mark.parametrize("kind", ALL_EVENTS, ids=lambda kind: kind.type)
def test_no_event_brings_a_control_character_to_standard_error(kind: type[BaseEvent]) -> None:
    event = kind(*WHO, **{name: _filled(name) for name in kind.__struct_fields__[3:]})
    line = event_line(event)
    _, err = shown([event], verbose=True)
    assert not set("\x1b\x07\r\x9b\u202e\x00") & set(err), line


def _filled(name: str) -> Any:
    match name:
        case "raw" | "subagent_id" | "cost":
            return None
        case "accumulated_view" | "input_accumulated_view":
            return SEEN
        case "input":
            return {"command": HOSTILE, HOSTILE: HOSTILE}
        case "level":
            return "warn"
        case "recoverable":
            return True
    numbers = ("_ms", "_index", "_tokens", "_count", "attempt", "attempts", "turns", "exit_code", "pct_used", "saved")
    return 1 if name.endswith(numbers) else HOSTILE


def result(**fields: Any) -> RunResult:
    known: dict[str, Any] = {
        "run_id": "0" * 26, "agent": "claude", "model": None, "session_id": "S", "exit_reason": "completed",
        "exit_code": 0, "signal": None, "duration_ms": 2500, "turn_count": 1, "cost": None, "token_usage": None,
        "error": None, "ledger": Ledger(), "texts": lambda: [["one"], ["two", "three"]],
    }  # fmt: skip
    return RunResult(**{**known, **fields})


def test_the_last_line_shows_tokens_that_were_read_from_a_cache() -> None:
    cached = result(token_usage=TokenUsage(1000, 20, cached_tokens=4000))
    shown = "".join(text for _, text in HumanView(Screen()).end(cached))
    assert shown.endswith("2.5 s, 1,000 tokens in, 20 out, 4,000 cached\n")


def test_the_last_lines_show_the_outcome_and_its_reason() -> None:
    view = HumanView(Screen())
    good = result(cost=ev.CostRecord(0.5, 1, 2), token_usage=TokenUsage(1000, 20), journal="/j")
    assert "".join(text for _, text in view.end(good)) == (
        "+ completed 1 turn, 2.5 s, 1,000 tokens in, 20 out, $0.5000\njournal: /j\n"
    )
    bad = result(exit_reason="turn_limit", error=RunError("ABORTED", "long " * 100 + "end"))
    lines = [(line.mark, line.text) for line in summary_lines(bad)]
    assert lines[0] == ("bad", "turn limit")
    assert lines[1][0] == "error"
    assert "end [ABORTED] (claude)\n" in "".join(text for _, text in view.end(bad))


@pytest.mark.parametrize(("detail", "named"), [
    ("make", "make"),
    ("--- /dev/null\n+++ b/a.txt\n@@ -0,0 +1 @@\n+one\n", "a.txt"),
    ("{}", "Use echo"),
    ('{"text":"ping"}', 'Use echo: {"text":"ping"}'),
])  # fmt: skip
def test_the_last_lines_name_what_was_denied(detail: str, named: str) -> None:
    lines = [f"{line.text} {line.rest}" for line in summary_lines(result(denials=(Denial("Use echo", detail),)))]
    assert f"1 request denied: {named}" in lines


def test_quiet_is_only_the_final_text_and_the_error() -> None:
    view = QuietView(Screen())
    assert view.show(message("x")[1]) == []
    assert view.end(result()) == [("out", "two\n\nthree\n")]
    failed = result(texts=list, exit_reason="failed", error=RunError("AUTH_ERROR", "no key"))
    assert view.end(failed) == [("err", "error: no key [AUTH_ERROR] (claude)\n")]
    assert QuietView(Screen(out_is_terminal=True)).end(result(texts=lambda: [["\x1b[2Jx"]])) == [("out", "x\n")]


def test_json_is_the_events_and_then_the_result_whatever_they_hold() -> None:
    delta = message("x")[1]
    (piece,) = JsonView(compact=False).show(delta)
    assert decode_event(piece.text) == delta
    assert '"accumulated"' not in JsonView(compact=True).show(delta)[0].text
    (last,) = JsonView(compact=False).end(result(texts=lambda: [["\ud800"]]))
    assert last.text.startswith('{"type":"run_result"')
    assert "\ufffd" in last.text


def test_compact_json_never_builds_accumulated_text(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(_: Accumulated) -> str:
        raise AssertionError("that would be quadratic")

    monkeypatch.setattr(Accumulated, "__str__", fail)
    assert JsonView(compact=True).show(message("x")[1])[0].text.endswith('"delta":"x"}\n')


def test_lines_with_wide_characters_fit() -> None:
    wide = "日本語テキスト" * 6
    events = [
        ev.ToolCallReadyEvent(*WHO, "t", "Bash", {"command": f"echo {wide}"}),
        ev.ShellStartEvent(*WHO, f"echo {wide}", "/w"),
        ev.ShellStdoutDeltaEvent(*WHO, f"{wide}\n"),
    ]
    first, second = shown(events, width=40)[1].splitlines()
    assert first.startswith("* Bash echo 日本語")
    assert second.startswith("  | 日本語")
    assert max(cell_width(first), cell_width(second)) <= 40
