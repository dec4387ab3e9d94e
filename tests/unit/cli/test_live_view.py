"""The live view: each test is a transcript of a terminal, which pyte emulates."""

from collections.abc import Iterable
from typing import Any

import anyio
import pyte
import pytest

from agent_mux import events as ev
from agent_mux.api.event_lines import EventLine, event_line
from agent_mux.cli.layout import ASCII, cell_width, cut, fold, symbols_for, wrap
from agent_mux.cli.live.footer import Footer
from agent_mux.cli.live.view import LiveView
from agent_mux.cli.output import Chunk, OutputWriter, Screen
from agent_mux.cli.terminal import Palette, TerminalSize
from agent_mux.events import Accumulated, BaseEvent, CostRecord, QuotaWindow
from agent_mux.views import BoundedText

WHO = ("0" * 26, "claude", 1)
SEEN = Accumulated.of("so far")
DIFF = "--- a/w/cart.py\n+++ b/w/cart.py\n@@ -7,3 +7,3 @@\n def f():\n-    return 1\n+    return 2\n"


class Terminal:
    """A live view at an emulated terminal."""

    def __init__(self, columns: int = 80, rows: int = 60, **screen: Any) -> None:
        self.now = 0.0
        self.received = ""
        self._size = TerminalSize(columns, rows)
        self._screen = pyte.Screen(columns, rows)
        self._screen.set_mode(pyte.modes.LNM)  # as the terminal driver does
        self._stream = pyte.Stream(self._screen)
        fields = {"width": columns, "out_is_terminal": True, "shared": True} | screen
        self.view = LiveView(Screen(**fields), root="/w", clock=lambda: self.now)
        self._footer = self.view.new_footer()

    def feed(self, *events: BaseEvent) -> "Terminal":
        for event in events:
            self.write(self.view.show(event))
        return self

    def tick(self, seconds: float = 0.0, model: str | None = None) -> "Terminal":
        self.now += seconds
        self.write(self.view.held_back())
        self._footer.set_lines(self.view.footer("claude", model))
        self.write([])
        return self

    def end(self, *lines: EventLine) -> "Terminal":
        self._footer.set_lines([])
        self.write(self.view.finish(lines))
        return self

    def write(self, chunks: Iterable[Chunk]) -> None:
        text = "".join(chunk.text for chunk in self._footer.around(chunks, self._size))
        self.received += text
        self._stream.feed(text)

    def press_enter(self, typed: str) -> None:
        self._stream.feed(typed + "\n")
        self._footer.line_ended()

    @property
    def lines(self) -> list[str]:
        return [line.rstrip() for line in self._screen.display if line.strip()]

    @property
    def rows(self) -> list[str]:
        return "\n".join(line.rstrip() for line in self._screen.display).rstrip("\n").split("\n")


def message(*deltas: str) -> list[BaseEvent]:
    return [
        ev.MessageStartEvent(*WHO),
        *(ev.TextDeltaEvent(*WHO, delta, SEEN) for delta in deltas),
        ev.MessageStopEvent(*WHO, "".join(deltas)),
    ]


def call(name: str, given: Any, key: str = "t") -> list[BaseEvent]:
    return [ev.ToolCallStartEvent(*WHO, key, name, ""), ev.ToolCallReadyEvent(*WHO, key, name, given)]


def command(line: str, output: str, exit_code: int = 0, error: str | None = None, ms: int = 5) -> list[BaseEvent]:
    failed = ev.ToolErrorEvent(*WHO, "t", "Bash", error if error is not None else f"Exit code {exit_code}\n{output}")
    return [
        *call("Bash", {"command": line}),
        ev.ShellStartEvent(*WHO, line, "/w"),
        *([ev.ShellStdoutDeltaEvent(*WHO, output)] if output else []),
        ev.ShellExitEvent(*WHO, exit_code, ms),
        failed if exit_code else ev.ToolResultEvent(*WHO, "t", "Bash", output, ms),
    ]


def shown(*events: BaseEvent, columns: int = 80, **screen: Any) -> list[str]:
    return Terminal(columns, **screen).feed(*events).end().rows


# -- the scrollback


def test_todo_list_is_shown_with_the_state_of_each_task() -> None:
    todos = [
        {"id": "1", "title": "Read\x1b[2J the tests", "status": "done"},
        {"id": "2", "title": "Fix", "status": "in_progress"},
        {"id": "3", "title": "Run", "status": "pending"},
    ]
    done = ev.ToolResultEvent(*WHO, "t", "write_todos", "Todos: 3 (1 done, 1 in_progress, 1 pending)", 1)
    assert shown(*call("write_todos", {"todos": todos}), done) == [
        "● write_todos 1 of 3 done; now: Fix", "  │ [x] Read the tests", "  │ [>] Fix", "  │ [ ] Run",
    ]  # fmt: skip


def test_indentation_of_output_is_kept() -> None:
    source = "def f():\n    if True:\n\treturn 1\n"
    assert shown(*command("cat f.py", source)) == [
        "● Bash cat f.py",
        "  │ def f():",
        "  │     if True:",
        "  │     return 1",
    ]


def test_long_output_is_folded_with_the_number_of_hidden_lines() -> None:
    rows = shown(*command("seq 100", "".join(f"{number}\n" for number in range(1, 101))))
    assert rows[1:] == [
        *(f"  │ {n}" for n in range(1, 7)),
        "  │ … 88 more lines",
        *(f"  │ {n}" for n in range(95, 101)),
    ]


def test_output_beyond_what_a_card_keeps_is_counted() -> None:
    rows = shown(*command("yes", "y\n" * 100_000))
    assert rows[7] == "  │ … 99,988 more lines"


def test_reason_of_a_failure_that_the_output_does_not_show_is_shown() -> None:
    assert shown(*command("sleep 60", "", -1, "Blocked: standalone sleep")) == [
        "● Bash sleep 60",
        "  └ Blocked: standalone sleep (exit code -1 · 5 ms)",
    ]


def test_failure_that_the_output_shows_is_not_repeated() -> None:
    assert shown(*command("make", "no rule\n", 2)) == ["● Bash make", "  │ no rule", "  └ exit code 2 · 5 ms"]


def test_edit_shows_its_diff_with_line_numbers_and_a_relative_path() -> None:
    done = ev.ToolResultEvent(*WHO, "t", "Edit", "The file /w/cart.py has been updated", 3)
    assert shown(*call("Edit", {"file_path": "/w/cart.py"}), done, ev.FilePatchEvent(*WHO, "/w/cart.py", DIFF)) == [
        "● Edit cart.py +1 -1",
        "  │    7   def f():",
        "  │    8 -     return 1",
        "  │    8 +     return 2",
    ]


def test_file_that_arrives_after_its_call_was_shown_is_added() -> None:
    terminal = Terminal().feed(*call("Edit", {"file_path": "/w/cart.py"}), ev.ToolResultEvent(*WHO, "t", "Edit", "", 3))
    terminal.tick()
    assert "● Edit cart.py" in terminal.rows
    terminal.feed(ev.FilePatchEvent(*WHO, "/w/cart.py", DIFF)).end()
    assert terminal.rows[-4:] == [
        "● Edit cart.py +1 -1", "  │    7   def f():", "  │    8 -     return 1", "  │    8 +     return 2",
    ]  # fmt: skip


def test_new_file_shows_its_beginning() -> None:
    text = "".join(f"line {number}\n" for number in range(20))
    rows = shown(
        *call("Write", {"file_path": "/w/new.py", "content": text}),
        ev.ToolResultEvent(*WHO, "t", "Write", "ok", 3),
        ev.FileCreateEvent(*WHO, "/w/new.py", len(text)),
    )
    assert rows[:3] == ["● Write new.py", "  │ created 150 bytes", "  │ + line 0"]
    assert rows[-1] == "  │ … 12 more lines"


def test_files_that_were_read_show_a_number_of_lines() -> None:
    read = [ev.ToolResultEvent(*WHO, "t", "Read", "a\nb\nc", 3), ev.FileReadEvent(*WHO, "/w/x")]
    assert shown(*call("Read", {"file_path": "/w/x"}), *read) == ["● Read x", "  │ 3 lines"]


def test_new_file_of_a_patch_with_several_files_shows_its_beginning() -> None:
    changes = [{"path": "/w/old.py", "diff": "@@ -1 +1 @@\n-a\n+b\n"}, {"path": "/w/new.py", "diff": "one\ntwo\n"}]
    rows = shown(
        *call("apply_patch", {"changes": changes}),
        ev.ToolResultEvent(*WHO, "t", "apply_patch", "ok", 3),
        ev.FilePatchEvent(*WHO, "/w/old.py", "--- a/old.py\n+++ b/old.py\n@@ -1 +1 @@\n-a\n+b\n"),
        ev.FileCreateEvent(*WHO, "/w/new.py", 8),
    )
    assert rows[-3:] == ["  │ created new.py 8 bytes", "  │ + one", "  │ + two"]


def test_changed_line_shows_its_end_and_an_unchanged_one_is_cut() -> None:
    diff = f"--- a/w/f\n+++ b/w/f\n@@ -1,2 +1,2 @@\n {'c' * 80}\n-{'x' * 60}1\n+{'x' * 60}2\n"
    rows = shown(
        *call("Edit", {"file_path": "/w/f"}),
        ev.ToolResultEvent(*WHO, "t", "Edit", "ok", 3),
        ev.FilePatchEvent(*WHO, "/w/f", diff),
        columns=60,
    )
    assert rows[1].endswith("c…")
    assert [row.strip("│ ") for row in rows[2:]] == [
        "2 - " + "x" * 49,
        "x" * 11 + "1",
        "2 + " + "x" * 49,
        "x" * 11 + "2",
    ]
    assert all(cell_width(row) <= 60 for row in rows)


@pytest.mark.parametrize("diff", [DIFF, "--- /dev/null\n+++ b/w/cart.py\n@@ -0,0 +1,2 @@\n+one\n+two\n"])
def test_diff_that_the_prompt_showed_is_not_repeated(diff: str) -> None:
    terminal = Terminal(asks=True)
    terminal.feed(
        *call("Edit", {"file_path": "/w/cart.py", "content": "one\ntwo\n"}),
        ev.ApprovalRequestEvent(*WHO, "i", "Edit a file", "/w/cart.py", "medium", tool_call_id="t", diff=diff),
    )
    terminal.write([Chunk("err", "allow? ")])
    terminal.press_enter("y")
    terminal.feed(
        ev.ApprovalGrantedEvent(*WHO, "i"),
        ev.ToolResultEvent(*WHO, "t", "Edit", "ok", 3),
        ev.FilePatchEvent(*WHO, "/w/cart.py", diff) if diff is DIFF else ev.FileCreateEvent(*WHO, "/w/cart.py", 8),
    )
    last = "  │ changed +1 -1" if diff is DIFF else "  │ created 8 bytes"
    assert terminal.feed(*command("true", "")).end().rows == ["● Edit cart.py", "allow? y", last, "", "● Bash true"]


def test_question_is_separated_from_what_is_above_it_and_its_call_names_it() -> None:
    terminal = Terminal(asks=True)
    terminal.feed(
        *command("ls", "a\n"), *call("Ask", {"questions": [{"question": "Which?", "options": []}]}, "q"),
        ev.InputRequiredEvent(*WHO, "i", "Which?", "tool"),
    )  # fmt: skip
    terminal.write([Chunk("err", "question: Which?\n> ")])
    terminal.press_enter("2")
    answer = "You answered: " + "long " * 16 + "answer"
    terminal.feed(ev.ToolResultEvent(*WHO, "q", "Ask", answer, 1))
    assert terminal.end().rows == [
        "● Bash ls", "  │ a", "", "question: Which?", "> 2", "", "● Ask Which?",
        "  │ You answered: " + "long " * 11 + "long", "  │ long long long long answer",
    ]  # fmt: skip


def test_title_with_wide_characters_fits() -> None:
    rows = shown(*command("printf '日本語テキスト 日本語テキスト'; exit 33", ""), columns=44)
    assert all(cell_width(row) <= 44 for row in rows)
    assert [row.strip() for row in rows] == ["● Bash printf '日本語テキスト", "日本語テキスト'; exit 33"]


def test_denied_call_is_marked_at_its_call() -> None:
    assert shown(
        *call("Bash", {"command": "rm x"}),
        ev.ApprovalRequestEvent(*WHO, "i", "Run", "rm x", "high", tool_call_id="t"),
        ev.ApprovalDeniedEvent(*WHO, "i", "not here"),
        ev.ToolErrorEvent(*WHO, "t", "Bash", "The user refused"),
    ) == ["● Bash rm x", "  └ denied: not here"]


def test_the_word_denied_is_shown_once() -> None:
    request = ev.ApprovalRequestEvent(*WHO, "i", "Run", "rm x", "high", tool_call_id="t")
    denied = ev.ApprovalDeniedEvent(*WHO, "i", "denied: this run has approval mode deny")
    assert shown(*call("Bash", {"command": "rm x"}), request, denied, ev.ToolErrorEvent(*WHO, "t", "Bash", "no")) == [
        "● Bash rm x", "  └ denied: this run has approval mode deny"
    ]  # fmt: skip
    assert event_line(denied) == EventLine("bad", "denied", "this run has approval mode deny")


def test_denial_without_a_call_is_a_line() -> None:
    request = ev.ApprovalRequestEvent(*WHO, "i", "Fetch", "https://x", "high")
    assert shown(request, ev.ApprovalDeniedEvent(*WHO, "i", "no network")) == ["x denied: https://x no network"]


def test_sub_agent_is_shown_with_its_inside_and_its_report() -> None:
    inside: dict[str, Any] = {"subagent_id": "s"}
    rows = shown(
        ev.SubagentSpawnEvent(*WHO, agent_name="Explore", prompt="find it", **inside),
        ev.MessageStartEvent(*WHO, **inside),
        ev.MessageStopEvent(*WHO, "a thought", **inside),
        ev.ToolCallStartEvent(*WHO, "g", "Grep", "", **inside),
        ev.ToolCallReadyEvent(*WHO, "g", "Grep", {"pattern": "x"}, **inside),
        ev.ToolResultEvent(*WHO, "g", "Grep", "hits", 1, **inside),
        ev.SubagentResultEvent(*WHO, agent_name="Explore", summary="found", **inside),
    )
    assert rows == [
        "● sub-agent Explore find it", "    a thought", "    ● Grep x", "", "● sub-agent Explore find it",
        "  │ 1 tool call", "  │ found",
    ]  # fmt: skip


def test_markdown_is_rendered_block_by_block() -> None:
    text = "# Title\n\nSome **bold** and `code`.\n\n```python\nif x:\n    y()\n```\n\n1. one\n\n2. two\n"
    whole = shown(*message(text))
    assert whole == [
        "Title", "", "Some bold and code.", "", "  if x:", "      y()", "", " 1. one", " 2. two",
    ]  # fmt: skip
    assert shown(*message(*text)) == whole
    terminal = Terminal().feed(*message("# Title\n\nSome **bold**\n", "text")[:-1])
    assert terminal.lines == ["Title"]
    assert terminal.tick().lines[:3] == ["Title", "Some **bold**", "text"]


def test_address_that_is_its_own_text_is_shown_once() -> None:
    rows = shown(*message("See <https://x.org/a> and [this](https://x.org/b).\n"))
    assert rows == ["See https://x.org/a and this (https://x.org/b)."]


def test_words_in_angle_brackets_are_text() -> None:
    text = "Run `a` with <name>, a List<String>.<br>Next.\n\n<details>\nmore\n</details>\n\n|a|\n|-|\n|b<br/>c|\n"
    rows = shown(*message(text))
    assert [row.strip() for row in rows if row.strip("─ ")] == [
        "Run a with <name>, a List<String>.", "Next.", "<details> more </details>", "a", "b", "c",
    ]  # fmt: skip


def test_abandoned_message_is_marked() -> None:
    start, delta, _ = message("half")
    assert shown(start, delta, ev.MessageStopEvent(*WHO, "half", abandoned=True)) == [
        "half",
        "",
        "! the model call broke off; its text is not part of the result",
    ]


def test_prose_wraps_between_words_and_paths_stay_whole() -> None:
    rows = shown(*message("The quick brown fox jumps over the lazy dog."), columns=29)
    assert rows == ["The quick brown fox jumps", "over the lazy dog."]
    path = "/home/me/.agent-mux/runs/01M8155B0000000000000000.journal"
    terminal = Terminal(200, width=30).end(EventLine("note", f"journal: {path}", whole=True))
    assert terminal.rows == [f"journal: {path}"]


def test_last_lines_wrap_between_words() -> None:
    error = EventLine("error", "the provider refused the key of this account", "[AUTH_ERROR] (claude)", whole=True)
    terminal = Terminal(36).end(EventLine("warning", "1 request denied:", "rm -rf build"), error)
    assert terminal.rows == [
        "! 1 request denied: rm -rf build",
        "error: the provider refused the key",
        "       of this account [AUTH_ERROR]",
        "       (claude)",
    ]


def test_hostile_output_reaches_the_terminal_as_text() -> None:
    evil = "\x1b]0;title\x07\x1b[2Jred\u202e\x9b31m"
    terminal = Terminal(palette=Palette(enabled=False)).feed(
        *message(evil),
        *command(f"echo {evil}", f"{evil}\n"),
        *call(f"Tool{evil}", {"path": f"/w/{evil}"}, "u"),
        ev.ToolErrorEvent(*WHO, "u", "Tool", evil),
        ev.LogEvent(*WHO, "stderr", evil),
    )
    terminal.tick().end()
    erasing = terminal.received.replace("\r", "").replace("\x1b[J", "").replace("\x1b[2A", "")
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(erasing)
    assert "red" in erasing


def test_progress_bar_shows_its_last_state() -> None:
    assert shown(*command("pull", " 10%\r 50%\r100% done\r\n"))[1] == "  │ 100% done"


def test_styles_are_used_with_a_palette_only() -> None:
    events = [*message("**b**"), *command("false", "", 1)]
    assert "\x1b[" not in Terminal().feed(*events).end().received
    assert "\x1b[31m●" in Terminal(palette=Palette(enabled=True)).feed(*events).end().received


def test_terminal_without_unicode_gets_ascii() -> None:
    assert symbols_for("latin-1") == ASCII
    rows = shown(*command("seq 30", "".join(f"{n}\n" for n in range(30))), encoding="ascii")
    assert rows[0] == "* Bash seq 30"
    assert rows[7] == "  | ... 18 more lines"


def test_shell_around_a_command_is_left_out() -> None:
    assert shown(*command("/bin/bash -lc 'echo hi'", "hi"))[0] == "● Bash echo hi"


# -- the footer


def test_footer_shows_what_runs_and_what_was_used() -> None:
    terminal = Terminal().feed(
        ev.SessionStartEvent(*WHO, "S1", False),
        ev.TurnStartEvent(*WHO, 0),
        *command("make", "first\nsecond\n")[:4],
        ev.TokenUsageEvent(*WHO, 3042, 479, quota=(QuotaWindow("five_hour", 0.42),)),
        ev.CostEvent(*WHO, CostRecord(total_usd=0.0356, input_tokens=1, output_tokens=1)),
    )
    assert terminal.tick(12, "opus").lines[1:] == [
        "⠦ Bash make 12 s",
        "  │ first",
        "  │ second",
        "  12 s · $0.0356 · 3.0k in 479 out · opus · five hour quota 42 %",
    ]


def test_figures_that_do_not_fit_are_left_out() -> None:
    usage = ev.TokenUsageEvent(*WHO, 3042, 479, quota=(QuotaWindow("five_hour", 0.42),))
    terminal = Terminal(44).feed(ev.TurnStartEvent(*WHO, 0), usage)
    assert terminal.tick(75, "claude-opus-5-5").lines[-1] == "  1:15 · 3.0k in 479 out · claude-opus-5-5"


def test_footer_before_the_first_event_names_the_agent() -> None:
    assert Terminal().tick().lines == ["⠋ starting claude", "  0 s"]


@pytest.mark.parametrize("columns", [60, 80])
def test_footer_leaves_nothing_behind(columns: int) -> None:
    events = [*message("a " * 200), *command("make", "out\n"), *message("b\n\nc")]
    still = Terminal(columns).feed(*events).end()
    moving = Terminal(columns)
    for event in events:
        moving.feed(event).tick(1)
    assert moving.end().rows == still.rows


def test_footer_never_follows_a_prompt() -> None:
    terminal = Terminal(asks=True).feed(
        *call("Bash", {"command": "rm x"}), ev.ApprovalRequestEvent(*WHO, "i", "Run", "rm x", "high", tool_call_id="t")
    )
    terminal.tick()
    terminal.write([Chunk("err", "permission needed\n"), Chunk("err", "[y]es / [n]o? ")])
    terminal.tick(5)
    assert terminal.lines == ["● Bash rm x", "permission needed", "[y]es / [n]o?"]
    terminal.press_enter("y")
    terminal.feed(ev.ApprovalGrantedEvent(*WHO, "i")).tick()
    assert terminal.lines[2:4] == ["[y]es / [n]o? y", "⠋ Bash rm x 5 s"]
    terminal.feed(ev.ToolResultEvent(*WHO, "t", "Bash", "gone", 1)).end()
    assert terminal.lines == ["● Bash rm x", "permission needed", "[y]es / [n]o? y", "  │ gone"]


def test_footer_of_a_narrowed_terminal_is_erased_with_its_wrapped_rows() -> None:
    footer = Footer()
    footer.set_lines(["x" * 70, "y"])
    footer.around([], TerminalSize(80, 24))
    footer.set_lines([])
    assert footer.around([], TerminalSize(40, 24)) == [Chunk("err", "\r\x1b[2A\x1b[J")]


def test_footer_is_never_higher_than_the_terminal() -> None:
    footer = Footer()
    footer.set_lines([str(number) for number in range(20)])
    (drawn,) = footer.around([], TerminalSize(80, 6))
    assert drawn.text == "16\n17\n18\n19"


@pytest.mark.anyio
async def test_footer_that_is_attached_while_a_question_waits_does_not_follow_it(
    capfd: pytest.CaptureFixture[str],
) -> None:
    output = OutputWriter()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(output.run)
            output.add([Chunk("err", "[y]es / [n]o? ")])
            await output.drain()
            output.attach_footer(Footer())
            output.set_footer(["working"])
            await output.drain()
            assert capfd.readouterr().err == "[y]es / [n]o? "
            output.line_ended()
            output.set_footer(["working"])
            await output.drain()
            tasks.cancel_scope.cancel()
    assert capfd.readouterr().err == "working"


@pytest.mark.anyio
async def test_nothing_is_written_while_a_person_types_a_line(capfd: pytest.CaptureFixture[str]) -> None:
    output = OutputWriter()
    with anyio.fail_after(30):
        async with anyio.create_task_group() as tasks:
            tasks.start_soon(output.run)
            with output.held():
                output.add([Chunk("err", "working")])
                await anyio.wait_all_tasks_blocked()
                assert capfd.readouterr().err == ""
            await output.drain()
            assert capfd.readouterr().err == "working"
            with output.held():
                output.add([Chunk("err", "the end")])
                await output.drain()  # the comparison is over: everything is written
                assert capfd.readouterr().err == "the end"
            tasks.cancel_scope.cancel()


def test_unchanged_footer_is_not_written_again() -> None:
    footer = Footer()
    assert footer.set_lines(["a"])
    footer.around([], TerminalSize())
    assert not footer.set_lines(["a"])
    assert footer.around([], TerminalSize()) == []


# -- layout


def test_widths_count_columns() -> None:
    assert cell_width("\x1b[1mab\x1b[0m") == 2
    assert cell_width("日本e\u0301") == 5
    assert cut("日本語", 5) == "日本…"
    assert wrap("a  bb   ccc", 5) == ["a  bb", "ccc"]
    assert wrap("x " + "y" * 30, 10) == ["x", "y" * 30]


@pytest.mark.parametrize(("lines", "hidden"), [(0, 0), (4, 0), (5, 0), (6, 2), (50, 46)])
def test_fold_counts_lines(lines: int, hidden: int) -> None:
    folded = fold(BoundedText("".join(f"{n}\n" for n in range(lines))), 2, 2)
    assert (len(folded.first) + len(folded.last) + folded.hidden, folded.hidden) == (lines, hidden)
