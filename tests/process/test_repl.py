"""`amux run -i` at a terminal."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.process.installed import PATIENCE, Installed
from tests.process.talking import TALKER, Talk, let_go, talk
from ulid import ULID

from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
ASKED = "[y]es / [n]o / [a]lways?"
IDLE, BUSY = ">", "(working) >"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + TALKER + "\ntime.sleep(600)\n"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def run_id() -> str:
    return str(ULID())


# -- prompts


def test_lines_are_prompts(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("hello")
        person.see("> hello", "sent", "you said hello", IDLE)
        person.enter("  and bye  ")
        person.see("turn 2", "you said and bye", IDLE)
        person.enter("")
        person.enter("/exit")
        assert person.left(0)[-2].startswith("+ completed 2 turns")


def test_the_first_prompt_may_be_an_argument(installed: Installed) -> None:
    with talk(installed, "hello") as person:
        person.see("scripted, session S", "you said first", IDLE)
        person.enter("/exit")
        person.left(0)


def test_lines_typed_ahead_are_prompts_in_their_order(installed: Installed) -> None:
    with talk(installed) as person:
        person.type("one\rtwo\rthree\r/exit\r")  # nobody reads yet
        shown = person.left(0)
        assert [line for line in shown if line.startswith("you said")] == [
            f"you said {n}" for n in ("one", "two", "three")
        ]


def test_a_paste_of_several_lines_is_one_prompt(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.type("\x1b[200~ask a\r\nb\x1b[201~")
        person.see("> ask a", "b")
        person.type("\x15\x08\x15")  # back to the beginning
        person.ready()
        person.enter("/exit")
        person.left(0)


def test_two_slashes_begin_a_prompt_with_one(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("//exit now")
        person.see_line("you said /exit now")
        person.enter("/exit")
        person.left(0)


def test_what_the_agent_prints_does_not_garble_what_is_typed(installed: Installed) -> None:
    go = let_go(installed)
    with talk(installed, GO=go) as person:
        person.ready()
        person.enter("begin The beginning")
        person.see("sent", "The beginning", BUSY)
        person.type("/stat")
        person.see("sent", "The beginning", "(working) > /stat")
        Path(go).write_text("go")
        person.see("The beginning and the end", "> /stat")
        person.enter("us")
        person.see_line("  scripted: running")
        person.enter("/exit")
        person.left(0)


def test_a_terminal_that_stops_reading_does_not_stop_the_agent(installed: Installed) -> None:
    flooded = installed.home / "flooded"
    with talk(installed) as person:
        person.ready()
        person.enter(f"flood {flooded}")
        deadline = time.monotonic() + PATIENCE
        while not flooded.exists():  # nobody looks at the screen
            assert time.monotonic() < deadline, "the agent was stopped"
            time.sleep(0.02)
        person.see_line("line 4999 of a flood")
        person.enter("/exit")
        person.left(0)
        assert all(f"line {number} of a flood" in person.screen for number in range(5000))


def test_the_answer_can_go_elsewhere(installed: Installed) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" > answer', "sh", *installed.command(["run", "-i", "scripted", "--no-color"])]
    with Talk(command, installed.environment(TALKER), installed.home) as person:
        person.ready()
        person.enter("hello")
        person.see("sent", IDLE)
        person.enter("ask me")
        person.see("turn 2", "permission needed (medium risk): run", "    me", ASKED)
        person.enter("y")
        person.see("+ allowed", IDLE)
        person.enter("/exit")
        assert "it was yes" not in person.left(0)
    assert (installed.home / "answer").read_text() == "you said hello\n\nit was yes\n"


def test_nothing_of_the_agent_controls_the_terminal(installed: Installed) -> None:
    body = TALKER.replace("'you said '", "'a\\x1b[2J\\x1b]0;x\\x07b\\rc '")
    with talk(installed, body=body) as person:
        person.ready()
        person.enter("x")
        person.see_line("abc x")
        assert "\x1b[2J" not in person.screen
        assert "\x07" not in person.screen
        person.enter("/exit")
        person.left(0)


# -- commands


def test_the_commands_that_tell(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id, "--model", "m1") as person:
        person.ready()
        person.enter("/cost")
        person.see_line("  cost unknown, no tokens counted yet")
        person.enter("cost")
        person.see_line("spent")
        person.enter("/cost")
        person.see_line("  $0.5000, 1,200 tokens in, 34 out")
        person.enter("/status")
        person.see("  scripted: running", "  model: m1", "  session: S", "  turns: 1", "  no pending requests", IDLE)
        person.enter("/session")
        person.see_line(f"  run: {run_id}")
        person.see_line("  journal: ")
        person.see_line("  resume it later: amux run -i scripted --session S")
        person.enter("/help")
        for command in ("exit", "quit", "abort", "interrupt", "pause", "resume", "queue", "steer", "help"):
            person.see_line(f"  /{command} ")
        person.enter("/quit")
        person.left(0)


@pytest.mark.parametrize(
    ("typed", "told"),
    [
        ("/nope", "unknown command /nope; /help lists the commands"),
        ("/", "unknown command /;"),
        ("/queue", "/queue requires a text"),
        ("/exit now", "/exit takes no text"),
        ("/interrupt", "no turn is running"),
        ("/resume", "error: run RUN_ID is running, not paused [INVALID_STATE_TRANSITION] /status"),
        ("/steer never mind", "error: scripted does not support a message in the middle of a turn"),
    ],
)
def test_what_cannot_be_done_is_said_and_the_talk_goes_on(
    installed: Installed, run_id: str, typed: str, told: str
) -> None:
    with talk(installed, "--run-id", run_id) as person:
        person.ready()
        person.enter(typed)
        person.see_line(told.replace("RUN_ID", run_id))
        person.enter("hello")
        person.see("you said hello", IDLE)
        person.enter("/exit")
        person.left(0)


def test_deliveries_are_told(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("work")
        person.see("sent", "working", BUSY)
        person.enter("/queue later")
        person.see_line("queued: it starts a turn after the earlier prompts")
        person.enter("/steer now")
        person.see_line("added to the current turn")
        person.enter("/interrupt")
        person.see("you said now", IDLE)
        assert "you said later" in person.lines
        person.enter("/exit")
        person.left(0)


def test_pause_and_resume(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id) as person:
        person.ready()
        person.enter("/pause")
        person.see_line("! paused")
        person.enter("/status")
        person.see_line("  scripted: paused")
        person.enter("/pause")
        person.see_line("error: a run that is paused cannot become paused [INVALID_STATE_TRANSITION]")
        person.enter("/resume")
        person.see_line("! resumed")
        person.enter("hello")
        person.see_line("you said hello")
        person.enter("/pause")
        person.see("! paused", times=2)
        person.enter("/exit")  # who is stopped cannot leave
        person.left(0)


def test_abort(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id, "--grace-period", "1") as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        person.enter("/abort")
        person.left(13)
    assert processes_of(run_id) == []


# -- keys and signals


def test_ctrl_c_stops_the_turn_and_leaves_what_is_typed(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        person.type("hello")
        person.see_line("(working) > hello")
        person.type("\x03")
        person.see_line("interrupted; press Ctrl-C again to abort the run")
        person.see_line("> hello")
        person.enter("")
        person.see("you said hello", IDLE)
        person.enter("/exit")
        person.left(0)


def test_ctrl_c_with_nothing_to_stop_clears_the_line(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.type("half a \x1apromp")
        person.see_line("> half a promp")
        person.type("\x03")
        told = person.see_line("no turn is running; ")
        person.see(told, IDLE)
        person.type("\x04")
        person.left(0)


@pytest.mark.parametrize("prompt", ["work", ""])
def test_ctrl_c_twice_ends_the_run(installed: Installed, run_id: str, prompt: str) -> None:
    with talk(installed, "--run-id", run_id, "--grace-period", "1") as person:
        person.ready()
        if prompt:
            person.enter(prompt)
            person.see("working", BUSY)
        person.type("\x03\x03")
        person.left(13)
    assert processes_of(run_id) == []


def test_ctrl_c_a_third_time_kills(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id, "--grace-period", "500", body=STUBBORN) as person:
        person.ready()
        person.type("\x03\x03")
        person.see_line("aborting the run")
        person.type("\x03")
        person.left(13)
    assert processes_of(run_id) == []


def test_a_sigint_from_elsewhere_is_a_ctrl_c(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        person.process.send_signal(signal.SIGINT)
        person.see_line("! the run was interrupted")
        person.enter("/exit")
        person.left(13)  # as the last turn ended


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_end_the_run_and_give_the_terminal_back(
    installed: Installed, run_id: str, number: signal.Signals
) -> None:
    with talk(installed, "--run-id", run_id, "--grace-period", "1") as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        person.process.send_signal(number)
        person.see_line(f"warning: {number.name}: aborting the run")
        person.left(13)
    assert processes_of(run_id) == []


def test_ctrl_d_waits_for_the_turn(installed: Installed) -> None:
    go = let_go(installed)
    with talk(installed, GO=go) as person:
        person.ready()
        person.enter("begin The beginning")
        person.see("The beginning", BUSY)
        person.type("\x04")
        person.see_line("waiting for the agent to finish")
        person.enter("/status")
        person.see_line("  scripted: running, working, ending")
        Path(go).write_text("go")
        assert "The beginning and the end" in person.left(0)


def test_ctrl_d_twice_does_not_wait(installed: Installed, run_id: str) -> None:
    body = TALKER.replace("hear_of('interrupt')", "time.sleep(600)")
    with talk(installed, "--run-id", run_id, "--grace-period", "500", body=body) as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        person.type("\x04")
        person.see_line("waiting for the agent to finish")
        person.type("\x04")
        person.left(13)
    assert processes_of(run_id) == []


def test_kill_9_leaves_no_process_and_gives_the_terminal_back(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id) as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        assert not person.is_as_it_was
        assert processes_of(run_id)
        person.process.kill()
        assert person.finish() == -signal.SIGKILL
        assert person.is_as_it_was
    deadline = time.monotonic() + PATIENCE
    while processes_of(run_id):
        assert time.monotonic() < deadline, "somebody survived"
        time.sleep(0.02)


def test_the_window_may_change(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("ask " + "x" * 50)
        person.see_line(ASKED)
        person.resize(40, 20)
        person.process.send_signal(signal.SIGWINCH)  # which only a terminal that controls its processes sends
        person.enter("n " + "because of this " * 4)
        assert person.see_line("x denied because").endswith("…")
        person.see("it was no", IDLE)
        person.enter("/exit")
        person.left(0)


def test_a_terminal_that_goes_away_ends_the_run(installed: Installed, run_id: str) -> None:
    with talk(installed, "--run-id", run_id, "--grace-period", "1") as person:
        person.ready()
        person.enter("work")
        person.see("working", BUSY)
        os.close(person._master)
        person._master = os.open(os.devnull, os.O_RDWR)
        assert person.process.wait(PATIENCE) in {13, 141}
    assert processes_of(run_id) == []


# -- questions


@pytest.mark.parametrize(("typed", "answer"), [("y", "yes"), ("no too risky", "no"), ("A", "yes"), ("\x04", "no")])
def test_permission_is_asked_for(installed: Installed, typed: str, answer: str) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("ask rm -rf /")
        person.see("permission needed (medium risk): run", "    rm -rf /", ASKED)
        person.type(typed if typed == "\x04" else typed + "\r")
        person.see_line(f"it was {answer}")
        person.see_line("+ allowed" if answer == "yes" else "x denied")
        person.see(f"it was {answer}", IDLE)
        person.enter("/exit")
        person.left(0)


def test_no_answer_is_asked_again_and_commands_are_commands(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("ask rm -rf /")
        person.see("    rm -rf /", ASKED)
        person.enter("maybe")
        person.see_line("invalid answer: ")
        person.enter("/status")
        person.see("  waiting for you: 1 request", "  run: rm -rf /", ASKED)
        person.enter("n")
        person.see("it was no", IDLE)
        person.enter("/exit")
        person.left(0)


@pytest.mark.parametrize(("typed", "answer"), [("2", "blue"), ("mauve", "mauve"), ("//x", "/x")])
def test_questions_are_answered(installed: Installed, typed: str, answer: str) -> None:
    with talk(installed) as person:
        person.ready()
        person.enter("question which?")
        person.see("question: which?", "  1. red", "  2. blue", IDLE)
        person.enter(typed)
        person.see(f"so {answer}", IDLE)
        person.enter("/exit")
        person.left(0)


def test_a_line_that_was_begun_before_the_question_is_no_answer(installed: Installed) -> None:
    go = let_go(installed)
    with talk(installed, GO=go) as person:
        person.ready()
        person.enter("prepare rm -rf /")
        person.see("sent", BUSY)
        person.type("y")
        person.see_line("(working) > y")
        Path(go).write_text("go")
        person.see("    rm -rf /", "(a question waits until this line is sent or cleared) > y")
        person.enter("")
        person.see_line("queued: ")
        person.see_line(ASKED)
        person.enter("n")
        person.see("turn 2", "you said y", IDLE)
        assert "it was no" in person.lines
        person.enter("/exit")
        person.left(0)


def test_lines_typed_before_the_question_are_no_answers(installed: Installed) -> None:
    go = let_go(installed)
    with talk(installed, GO=go) as person:
        person.ready()
        person.enter("prepare rm -rf /")
        person.type("y\ry\r")
        person.see_line("queued: ")
        Path(go).write_text("go")
        person.see_line(ASKED)
        person.enter("n")
        person.see("turn 3", "you said y", IDLE)
        assert "it was no" in person.lines
        person.enter("/exit")
        person.left(0)


def test_a_question_ends_with_the_run(installed: Installed) -> None:
    with talk(installed, "--timeout", "2", "--grace-period", "0.1") as person:
        person.ready()
        person.enter("ask rm -rf /")
        person.see_line(ASKED)
        assert "(no longer needed)" in person.left(11)


def test_nobody_need_be_asked(installed: Installed) -> None:
    with talk(installed, "--non-interactive") as person:
        person.ready()
        person.enter("ask rm -rf /")
        person.see_line("warning: no terminal to ask on")
        person.see_line("it was no")
        person.enter("/exit")
        person.left(0)


# -- the end by itself


def test_an_agent_that_dies_ends_the_talk(installed: Installed) -> None:
    with talk(installed) as person:
        person.ready()
        person.type("half")
        person.see_line("> half")
        person.type("\x15")
        person.enter("die")
        assert person.left(12)[-1].endswith("[AGENT_CRASH] (scripted)")


def test_an_agent_that_cannot_talk_is_told_at_the_start(installed: Installed) -> None:
    done = installed.run("run", "-i", "cursor", "--json", stdin=b"")
    assert (done.returncode, '"CAPABILITY_ERROR"' in done.stdout) == (6, True)


@pytest.mark.parametrize("flags", [["--quiet"], []])
def test_it_needs_a_terminal_and_more_than_the_last_answer(installed: Installed, flags: list[str]) -> None:
    done = installed.run("run", "-i", "scripted", "--no-json", *flags, body=TALKER, stdin=b"hello\n")
    assert done.returncode == 2
    assert "error: --interactive " in done.stderr
