"""`amux run -i` at a terminal."""

import os
import signal
import time
from pathlib import Path

import pytest
from tests.process.conversations import CHAT_AGENT, ReplTerminal, make_go_pipe, start_repl
from tests.process.installed_command import PATIENCE, Installed
from ulid import ULID

from agent_mux.process.marker import processes_of

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")
ASKED = "[y]es / [n]o / [a]lways?"
CHOOSING = "number or text>"
IDLE, BUSY = ">", "(working) >"
STUBBORN = "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + CHAT_AGENT + "\ntime.sleep(600)\n"


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.fixture
def run_id() -> str:
    return str(ULID())


# -- prompts


@pytest.mark.slow
def test_lines_are_prompts(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("hello")
        repl.wait_for("> hello", "sent", "echo hello", IDLE)
        repl.enter("  and bye  ")
        repl.wait_for("turn 2", "echo and bye", IDLE)
        repl.enter("")
        repl.enter("/exit")
        assert any(line.startswith("+ completed 2 turns") for line in repl.wait_for_exit(0))


@pytest.mark.slow
def test_first_prompt_may_be_an_argument(installed: Installed) -> None:
    with start_repl(installed, "hello") as repl:
        repl.wait_for("scripted, session S", "echo first", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_lines_typed_ahead_are_prompts_in_order(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.type("one\rtwo\rthree\r/exit\r")  # before the command reads
        shown = repl.wait_for_exit(0)
        assert [line for line in shown if line.startswith("echo")] == [f"echo {n}" for n in ("one", "two", "three")]


@pytest.mark.slow
def test_multiline_paste_is_one_prompt(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.type("\x1b[200~ask a\r\nb\x1b[201~")
        repl.wait_for("> ask a", "b")
        repl.type("\x15\x08\x15")  # back to the start
        repl.wait_until_ready()
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_double_slash_escapes_a_prompt(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("//exit now")
        repl.wait_for_line("echo /exit now")
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_agent_output_does_not_garble_typed_text(installed: Installed) -> None:
    go = make_go_pipe(installed)
    with start_repl(installed, GO=go) as repl:
        repl.wait_until_ready()
        repl.enter("begin The beginning")
        repl.wait_for("sent", "The beginning", BUSY)
        repl.type("/stat")
        repl.wait_for("sent", "The beginning", "(working) > /stat")
        Path(go).write_text("go")
        repl.wait_for("The beginning and the end", "> /stat")
        repl.enter("us")
        repl.wait_for_line("  scripted: running")
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_blocked_terminal_does_not_block_the_agent(installed: Installed) -> None:
    flooded = installed.home / "flooded"
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter(f"flood {flooded}")
        deadline = time.monotonic() + PATIENCE
        while not flooded.exists():  # the screen is not read
            assert time.monotonic() < deadline, "the agent was blocked"
            time.sleep(0.02)
        repl.wait_for_line("line 4999 of a flood")
        repl.enter("/exit")
        repl.wait_for_exit(0)
        assert all(f"line {number} of a flood" in repl.output for number in range(5000))


@pytest.mark.slow
def test_answer_can_be_redirected(installed: Installed) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" > answer', "sh", *installed.command(["run", "-i", "scripted", "--no-color"])]
    with ReplTerminal(command, installed.environment(CHAT_AGENT), installed.home) as repl:
        repl.wait_until_ready()
        repl.enter("hello")
        repl.wait_for("sent", IDLE)
        repl.enter("ask me")
        repl.wait_for("turn 2", "permission needed (medium risk): run", "    me", ASKED)
        repl.enter("y")
        repl.wait_for("+ allowed", IDLE)
        repl.enter("/exit")
        assert "it was yes" not in repl.wait_for_exit(0)
    assert (installed.home / "answer").read_text() == "echo hello\n\nit was yes\n"


@pytest.mark.slow
def test_agent_output_is_sanitized(installed: Installed) -> None:
    body = CHAT_AGENT.replace("'echo '", "'a\\x1b[2J\\x1b]0;x\\x07b\\rc '")
    with start_repl(installed, body=body) as repl:
        repl.wait_until_ready()
        repl.enter("x")
        repl.wait_for_line("abc x")
        assert "\x1b[2J" not in repl.output
        assert "\x07" not in repl.output
        repl.enter("/exit")
        repl.wait_for_exit(0)


# -- commands


@pytest.mark.slow
def test_information_commands_print_their_data(installed: Installed, run_id: str) -> None:
    with start_repl(installed, "--run-id", run_id, "--model", "m1") as repl:
        repl.wait_until_ready()
        repl.enter("/cost")
        repl.wait_for_line("  cost unknown, no tokens counted yet")
        repl.enter("cost")
        repl.wait_for_line("spent")
        repl.enter("/cost")
        repl.wait_for_line("  $0.5000, 1,200 tokens in, 34 out")
        repl.enter("/status")
        state = "  scripted: running, ready for a prompt"
        repl.wait_for(state, "  model: m1", "  session: S", "  turns: 1", "  no pending requests", IDLE)
        repl.enter("/session")
        repl.wait_for_line(f"  run: {run_id}")
        repl.wait_for_line("  journal: ")
        repl.wait_for_line("  resume it later: amux run -i scripted --session S")
        repl.enter("/help")
        for command in ("exit", "quit", "abort", "interrupt", "pause", "resume", "queue", "steer", "help"):
            repl.wait_for_line(f"  /{command} ")
        repl.enter("/quit")
        repl.wait_for_exit(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("typed", "message"),
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
def test_refused_commands_are_reported_and_the_session_continues(
    installed: Installed, run_id: str, typed: str, message: str
) -> None:
    with start_repl(installed, "--run-id", run_id) as repl:
        repl.wait_until_ready()
        repl.enter(typed)
        repl.wait_for_line(message.replace("RUN_ID", run_id))
        repl.enter("hello")
        repl.wait_for("echo hello", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_deliveries_are_reported(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("sent", "working", BUSY)
        repl.enter("/queue later")
        repl.wait_for_line("queued: it starts a turn after the earlier prompts")
        repl.enter("/steer now")
        repl.wait_for_line("added to the current turn")
        repl.enter("/interrupt")
        repl.wait_for("echo now", IDLE)
        assert "echo later" in repl.lines
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_paused_run_resumes_and_closes(installed: Installed, run_id: str) -> None:
    with start_repl(installed, "--run-id", run_id) as repl:
        repl.wait_until_ready()
        repl.enter("/pause")
        repl.wait_for_line("! paused")
        repl.enter("/status")
        repl.wait_for_line("  scripted: paused")
        repl.enter("/pause")
        repl.wait_for_line("error: a run that is paused cannot become paused [INVALID_STATE_TRANSITION]")
        repl.enter("/resume")
        repl.wait_for_line("! resumed")
        repl.enter("hello")
        repl.wait_for_line("echo hello")
        repl.enter("/pause")
        repl.wait_for("! paused", times=2)
        repl.enter("/exit")  # a stopped process cannot exit by itself
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_abort_ends_the_run(installed: Installed, run_id: str) -> None:
    with start_repl(installed, "--run-id", run_id, "--grace-period", "1") as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.enter("/abort")
        repl.wait_for_exit(13)
    assert processes_of(run_id) == []


# -- keys and signals


@pytest.mark.slow
def test_ctrl_c_interrupts_the_turn_and_keeps_typed_text(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.type("hello")
        repl.wait_for_line("(working) > hello")
        repl.type("\x03")
        repl.wait_for_line("interrupted; press Ctrl-C again to abort the run")
        repl.wait_for_line("> hello")
        repl.enter("")
        repl.wait_for("echo hello", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_ctrl_c_without_a_turn_clears_the_line(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.type("half a \x1apromp")
        repl.wait_for_line("> half a promp")
        repl.type("\x03")
        message = repl.wait_for_line("no turn is running; ")
        repl.wait_for(message, IDLE)
        repl.type("\x04")
        repl.wait_for_exit(0)


@pytest.mark.slow
@pytest.mark.parametrize("prompt", ["work", ""])
def test_second_ctrl_c_aborts_the_run(installed: Installed, run_id: str, prompt: str) -> None:
    with start_repl(installed, "--run-id", run_id, "--grace-period", "1") as repl:
        repl.wait_until_ready()
        if prompt:
            repl.enter(prompt)
            repl.wait_for("working", BUSY)
        repl.type("\x03\x03")
        repl.wait_for_exit(13)
    assert processes_of(run_id) == []


@pytest.mark.slow
def test_third_ctrl_c_kills_the_run(installed: Installed, run_id: str) -> None:
    with start_repl(installed, "--run-id", run_id, "--grace-period", "500", body=STUBBORN) as repl:
        repl.wait_until_ready()
        repl.type("\x03\x03")
        repl.wait_for_line("aborting the run")
        repl.type("\x03")
        repl.wait_for_exit(13)
    assert processes_of(run_id) == []


@pytest.mark.slow
def test_external_sigint_acts_like_ctrl_c(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.send_signal(signal.SIGINT)
        repl.wait_for_line("! the run was interrupted")
        repl.enter("/exit")
        repl.wait_for_exit(13)  # the exit code of the last turn


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
def test_other_signals_end_the_run_and_restore_the_terminal(
    installed: Installed, run_id: str, number: signal.Signals
) -> None:
    with start_repl(installed, "--run-id", run_id, "--grace-period", "1") as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.send_signal(number)
        repl.wait_for_line(f"warning: {number.name}: aborting the run")
        repl.wait_for_exit(13)
    assert processes_of(run_id) == []


@pytest.mark.slow
def test_ctrl_d_waits_for_the_turn(installed: Installed) -> None:
    go = make_go_pipe(installed)
    with start_repl(installed, GO=go) as repl:
        repl.wait_until_ready()
        repl.enter("begin The beginning")
        repl.wait_for("The beginning", BUSY)
        repl.type("\x04")
        repl.wait_for_line("waiting for the agent to finish")
        repl.enter("/status")
        repl.wait_for_line("  scripted: running, working, ending")
        Path(go).write_text("go")
        assert "The beginning and the end" in repl.wait_for_exit(0)


@pytest.mark.slow
def test_second_ctrl_d_does_not_wait(installed: Installed, run_id: str) -> None:
    body = CHAT_AGENT.replace("read_next('interrupt')", "time.sleep(600)")
    with start_repl(installed, "--run-id", run_id, "--grace-period", "500", body=body) as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.type("\x04")
        repl.wait_for_line("waiting for the agent to finish")
        repl.type("\x04")
        repl.wait_for_exit(13)
    assert processes_of(run_id) == []


@pytest.mark.slow
def test_sigkill_leaves_no_process_and_restores_the_terminal(installed: Installed, run_id: str) -> None:
    # The shell keeps the terminal, as the user's own does: when the leader of a session ends, the kernel hangs up.
    shell = 'sh -c "echo \\$\\$ > pid; exec \\"\\$@\\"" sh "$@"; read line; exit 3'
    command = installed.command(["run", "-i", "scripted", "--no-color", "--run-id", run_id])
    environment = installed.environment(CHAT_AGENT)
    with ReplTerminal(["/bin/sh", "-c", shell, "sh", *command], environment, installed.home) as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        assert not repl.is_restored
        assert processes_of(run_id)
        os.kill(int((installed.home / "pid").read_text()), signal.SIGKILL)
        repl.wait_until_restored()
        repl.enter("")
        repl.wait_for_exit(3)
    deadline = time.monotonic() + PATIENCE
    while processes_of(run_id):
        assert time.monotonic() < deadline, "a process survived"
        time.sleep(0.02)


@pytest.mark.slow
def test_window_can_be_resized(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("ask " + "x" * 50)
        repl.wait_for_line(ASKED)
        repl.resize(40, 20)
        repl.enter("n " + "because of this " * 4)
        repl.wait_for_line("x denied:")
        repl.wait_for("it was no", IDLE)
        assert "  this because of this" in repl.lines  # wrapped between words
        repl.enter("/nosuch")
        repl.wait_for(
            "unknown command /nosuch; /help lists the", "  commands, and // starts a prompt with", "  a slash", IDLE
        )
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_closed_terminal_ends_the_run(installed: Installed, run_id: str) -> None:
    with start_repl(installed, "--run-id", run_id, "--grace-period", "1") as repl:
        repl.wait_until_ready()
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.hang_up()
        assert repl.wait() in {13, 141}
    assert processes_of(run_id) == []


# -- questions


@pytest.mark.parametrize(("typed", "answer"), [("y", "yes"), ("no too risky", "no"), ("A", "yes"), ("\x04", "no")])
def test_approval_is_asked_at_the_prompt(installed: Installed, typed: str, answer: str) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("ask rm -rf /")
        repl.wait_for("permission needed (medium risk): run", "    rm -rf /", ASKED)
        repl.type(typed if typed == "\x04" else typed + "\r")
        repl.wait_for_line(f"it was {answer}")
        if answer == "no":
            repl.wait_for_line("x denied: rm -rf /")
        repl.wait_for(f"it was {answer}", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_invalid_answer_is_asked_again_and_commands_still_work(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("ask rm -rf /")
        repl.wait_for("    rm -rf /", ASKED)
        repl.enter("maybe")
        repl.wait_for_line("invalid answer: ")
        repl.enter("/status")
        repl.wait_for("  waiting for you: 1 request", "  run: rm -rf /", ASKED)
        repl.enter("n")
        repl.wait_for("it was no", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
@pytest.mark.parametrize(("typed", "answer"), [("2", "blue"), ("mauve", "mauve"), ("//x", "/x")])
def test_question_is_answered(installed: Installed, typed: str, answer: str) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("question which?")
        repl.wait_for("question: which?", "  1. red", "  2. blue", CHOOSING)
        repl.enter(typed)
        repl.wait_for(f"so {answer}", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_refused_answer_is_explained_and_asked_for_again(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.enter("question choice")
        repl.wait_for("question: choice", "  1. red", "  2. blue", CHOOSING)
        repl.enter("mauve")
        repl.wait_for(
            "choice: got 'mauve'; allowed: 'red' or 'blue'", "question: choice", "  1. red", "  2. blue", CHOOSING
        )
        repl.enter("red")
        repl.wait_for("so red", IDLE)
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_line_started_before_the_question_does_not_answer_it(installed: Installed) -> None:
    go = make_go_pipe(installed)
    with start_repl(installed, GO=go) as repl:
        repl.wait_until_ready()
        repl.enter("prepare rm -rf /")
        repl.wait_for("sent", BUSY)
        repl.type("y")
        repl.wait_for_line("(working) > y")
        Path(go).write_text("go")
        repl.wait_for("    rm -rf /", "(a question waits until this line is sent or cleared) > y")
        repl.enter("")
        repl.wait_for_line("queued: ")
        repl.wait_for_line(ASKED)
        repl.enter("n")
        repl.wait_for("turn 2", "echo y", IDLE)
        assert "it was no" in repl.lines
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_lines_typed_before_the_question_do_not_answer_it(installed: Installed) -> None:
    go = make_go_pipe(installed)
    with start_repl(installed, GO=go) as repl:
        repl.wait_until_ready()
        repl.enter("prepare rm -rf /")
        repl.type("y\ry\r")
        repl.wait_for_line("queued: ")
        Path(go).write_text("go")
        repl.wait_for_line(ASKED)
        repl.enter("n")
        repl.wait_for("turn 3", "echo y", IDLE)
        assert "it was no" in repl.lines
        repl.enter("/exit")
        repl.wait_for_exit(0)


@pytest.mark.slow
def test_question_is_withdrawn_when_the_run_ends(installed: Installed) -> None:
    with start_repl(installed, "--timeout", "2", "--grace-period", "0.1") as repl:
        repl.wait_until_ready()
        repl.enter("ask rm -rf /")
        repl.wait_for_line(ASKED)
        assert "(no longer needed)" in repl.wait_for_exit(11)


@pytest.mark.slow
def test_non_interactive_denies_requests(installed: Installed) -> None:
    with start_repl(installed, "--non-interactive") as repl:
        repl.wait_until_ready()
        repl.enter("ask rm -rf /")
        repl.wait_for_line("warning: no terminal to ask on")
        repl.wait_for_line("it was no")
        repl.enter("/exit")
        repl.wait_for_exit(0)


# -- ends without a command


@pytest.mark.slow
def test_crashed_agent_ends_the_session(installed: Installed) -> None:
    with start_repl(installed) as repl:
        repl.wait_until_ready()
        repl.type("half")
        repl.wait_for_line("> half")
        repl.type("\x15")
        repl.enter("die")
        assert repl.wait_for_exit(12)[-1].endswith("[AGENT_CRASH] (scripted)")


@pytest.mark.slow
def test_agent_without_interactive_mode_is_refused_at_the_start(installed: Installed) -> None:
    done = installed.run("run", "-i", "cursor", "--json", stdin=b"")
    assert (done.returncode, '"CAPABILITY_ERROR"' in done.stdout) == (6, True)


@pytest.mark.parametrize("flags", [["--quiet"], []])
def test_interactive_mode_requires_a_terminal_and_full_output(installed: Installed, flags: list[str]) -> None:
    done = installed.run("run", "-i", "scripted", "--no-json", *flags, body=CHAT_AGENT, stdin=b"hello\n")
    assert done.returncode == 2
    assert "error: --interactive " in done.stderr


# -- the view


def test_answer_is_rendered_and_the_footer_shows_what_runs(installed: Installed, tmp_path: Path) -> None:
    body = CHAT_AGENT.replace("emit(text='echo ' + prompt)", "emit(text='Look at **this**:\\n\\n- ' + prompt + '\\n')")
    with start_repl(installed, body=body, GO=make_go_pipe(installed)) as repl:
        repl.wait_until_ready()
        repl.enter("one")
        repl.wait_for("Look at this:", " • one", IDLE)
        repl.enter("work")
        repl.wait_for("working", BUSY)
        repl.wait_for_footer()
        repl.type("\x03")
        repl.wait_for_line("interrupted; press Ctrl-C again to abort the run")
        repl.enter("/abort")
        repl.wait_for_exit(13)
