"""`amux run -i --json`: JSON lines in and out."""

import json
import os
import pty
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.process.installed import PATIENCE, Installed
from tests.process.talking import TALKER
from tests.process.talking import program as talk
from ulid import ULID

from agent_mux import validate
from agent_mux.process.marker import processes_of
from agent_mux.run.commands import RESPONSE_TYPES

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


def test_lines_are_prompts_and_the_end_of_the_input_closes_in_order(installed: Installed) -> None:
    with talk(installed) as program:
        program.say("hello")
        assert program.hear("ack", command="prompt") == {"type": "ack", "command": "prompt", "delivery": "applied"}
        program.hear("message_stop", text="you said hello")
        program.say("")
        program.say("/exit is a prompt, too")
        program.hear("message_stop", text="you said /exit is a prompt, too")
        program.leave()
        result = program.left(0)
        assert (result["exitReason"], result["turnCount"]) == ("completed", 2)
        assert program.warnings == ""


def test_what_was_asked_before_the_end_of_the_input_is_done(installed: Installed) -> None:
    lines = ["one", '{"type":"prompt","text":"{two}"}', "three"]
    for stdin in ("\n".join(lines) + "\n", "\n".join(lines)):
        done = installed.run("run", "-i", "scripted", body=TALKER, stdin=stdin.encode())  # between two pipes
        *told, last = map(json.loads, done.stdout.splitlines())
        assert done.returncode == 0
        assert [line["text"] for line in told if line["type"] == "message_stop"] == [
            "you said one", "you said {two}", "you said three",
        ]  # fmt: skip
        assert last["type"] == "run_result"


def test_a_file_is_read_like_a_pipe(installed: Installed, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\ntwo")
    with path.open() as lines:
        done = subprocess.run(
            installed.command(["run", "-i", "scripted", "--json"]), env=installed.environment(TALKER), stdin=lines,
            capture_output=True, timeout=PATIENCE, check=False, cwd=installed.home,
        )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["text"] == "you said two"
    nothing = installed.run("run", "-i", "scripted", "--json", body=TALKER)  # /dev/null
    assert (nothing.returncode, json.loads(nothing.stdout.splitlines()[-1])["exitReason"]) == (0, "completed")


def test_the_first_prompt_may_be_an_argument(installed: Installed) -> None:
    done = installed.run("run", "-i", "scripted", "hello", "--json", body=TALKER, stdin=b"")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["text"]) == (0, "you said first")


def test_deliveries_interruption_and_status(installed: Installed) -> None:
    with talk(installed, "--model", "m1") as program:
        program.say(type="prompt", text="work", id=1)
        assert program.hear("ack", id=1)["delivery"] == "applied"
        program.hear("text_delta", delta="working")
        program.say(type="queue", text="later", id=2)
        assert program.hear("ack", id=2)["delivery"] == "queued"
        program.say(type="steer", text="now", id="three")
        assert program.hear("ack", id="three")["delivery"] == "merged"
        program.say(type="status", id=4)
        status = program.hear("ack", id=4)
        told = (status["agent"], status["model"], status["state"], status["busy"], status["turnCount"])
        assert told == ("scripted", "m1", "running", True, 1)
        program.say(type="interrupt", id=5)
        program.hear("ack", id=5, command="interrupt")
        program.hear("error", code="ABORTED", recoverable=True)
        program.hear("message_stop", text="you said now")
        program.say("cost")
        program.hear("message_stop", text="spent")
        program.hear("turn_end")
        program.say(type="status")
        status = program.hear("ack", command="status")
        assert (status["busy"], status["cost"]["totalUsd"], status["tokenUsage"]["inputTokens"]) == (False, 0.5, 1200)
        program.say(type="close", id=6)
        program.hear("ack", id=6)
        program.left(0)


def test_approvals_wait_for_the_program(installed: Installed) -> None:
    with talk(installed) as program:
        for command, answer in ((("approve", {"always": True}), "yes"), (("deny", {"reason": "no"}), "no")):
            program.say("ask rm -rf /")
            asked = program.hear("approval_request", detail="rm -rf /")
            program.say(type="status")
            (pending,) = program.hear("ack", command="status")["pending"]
            assert pending == {
                "interactionId": asked["interactionId"], "type": "approval", "description": "run: rm -rf /",
            }  # fmt: skip
            name, fields = command
            program.say(type=name, interactionId=asked["interactionId"], **fields)
            program.hear("ack", command=name)
            program.hear("message_stop", text=f"it was {answer}")
        program.say(type="approve", interactionId=asked["interactionId"], id=9)
        assert program.hear("command_error", id=9)["error"]["code"] == "INTERACTION_NOT_FOUND"
        program.leave()
        program.left(0)


@pytest.mark.parametrize(("fields", "answer"), [({"text": "mauve"}, "mauve"), ({"option": 1}, "blue")])
def test_questions_wait_for_the_program(installed: Installed, fields: dict[str, object], answer: str) -> None:
    with talk(installed, "--yolo") as program:
        program.say("question which?")
        asked = program.hear("input_required", question="which?")
        program.say(type="approve", interactionId=asked["interactionId"])
        assert program.hear("command_error", command="approve")["error"]["code"] == "VALIDATION_ERROR"
        program.say(type="answer", interactionId=asked["interactionId"], **fields)
        program.hear("message_stop", text=f"so {answer}")
        program.leave()
        program.left(0)


def test_nobody_can_answer_after_the_end_of_the_input(installed: Installed) -> None:
    with talk(installed, body=TALKER.replace("hear_of('answer')", "str(hear_of('answer'))")) as program:
        program.say("ask first")
        program.hear("approval_request")
        program.say("ask second")
        program.leave()
        assert program.left(0)["text"] == "it was None"  # this agent has closed its ears by then
        assert [line["type"] for line in program.lines].count("approval_denied") == 2
        assert program.warnings.count("warning: no terminal to ask on") == 1


def test_nobody_need_be_asked(installed: Installed) -> None:
    with talk(installed, "--non-interactive") as program:
        program.say("ask first")
        program.hear("message_stop", text="it was no")
        program.leave()
        program.left(0)


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ("{", {}),
        ('{"type":"dance","id":1}', {"command": "dance", "id": 1}),
        ('{"type":"prompt","text":5,"id":"x"}', {"command": "prompt", "id": "x"}),
        ('{"type":"steer"}', {"command": "steer"}),
        ('{"type":"prompt","text":" "}', {"command": "prompt"}),
        ('{"type":"answer","interactionId":"i","id":[1]}', {"command": "answer"}),
        ('{"text":"x"}', {}),
    ],
)
def test_bad_lines_are_told_and_the_run_goes_on(installed: Installed, line: str, told: dict[str, object]) -> None:
    with talk(installed) as program:
        program.say(line)
        wrong = program.hear("command_error")
        assert {name: wrong[name] for name in wrong if name not in {"type", "error"}} == told
        assert wrong["error"]["code"] == "VALIDATION_ERROR"
        program.say("hello")
        program.hear("message_stop", text="you said hello")
        program.leave()
        program.left(0)


def test_what_the_agent_refuses_is_told(installed: Installed) -> None:
    with talk(installed) as program:
        program.say(type="steer", text="never mind", id=1)
        assert program.hear("command_error", id=1)["error"]["code"] == "CAPABILITY_ERROR"
        program.say(type="resume", id=2)
        assert program.hear("command_error", id=2)["error"]["code"] == "INVALID_STATE_TRANSITION"
        program.say(type="interrupt", id=3)
        assert program.hear("command_error", id=3)["error"]["code"] == "INVALID_STATE_TRANSITION"
        program.leave()
        program.left(0)


def test_pause_resume_and_close_while_paused(installed: Installed) -> None:
    with talk(installed) as program:
        program.hear("session_start")
        program.say(type="pause")
        program.hear("paused")
        program.say(type="resume")
        program.hear("resumed")
        program.say("hello")
        program.hear("turn_end")
        program.say(type="pause")
        program.hear("paused")
        program.leave()  # who is stopped cannot leave
        program.left(0)


def test_abort_is_answered_and_ends_the_run(installed: Installed) -> None:
    with talk(installed, "--grace-period", "1") as program:
        program.say("work")
        program.hear("text_delta")
        program.say(type="abort", id=1)
        program.hear("ack", id=1)
        program.hear("aborted")
        assert program.left(13)["exitReason"] == "aborted"


def test_an_agent_that_dies_ends_it_while_the_input_is_open(installed: Installed) -> None:
    with talk(installed) as program:
        program.say("die")
        assert program.left(12)["exitReason"] == "crashed"


def test_a_limit_ends_it_while_the_input_is_open(installed: Installed) -> None:
    with talk(installed, "--max-cost", "0.1") as program:
        program.say("cost")
        result = program.left(16)
        assert (result["exitReason"], result["error"]["code"]) == ("budget", "BUDGET_EXCEEDED")


def test_a_reader_that_goes_away_ends_it(installed: Installed) -> None:
    run_id = str(ULID())
    with talk(installed, "--run-id", run_id, "--grace-period", "1") as program:
        program.say("work")
        program.hear("text_delta")
        assert program.process.stdout is not None
        program.process.stdout.close()
        assert program.process.wait(PATIENCE) == 141
    assert processes_of(run_id) == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_it(installed: Installed, number: signal.Signals) -> None:
    with talk(installed, "--grace-period", "1") as program:
        program.say("work")
        program.hear("text_delta")
        program.process.send_signal(number)
        program.left(13)
        assert number.name in program.warnings


def test_kill_9_leaves_no_process(installed: Installed) -> None:
    run_id = str(ULID())
    with talk(installed, "--run-id", run_id) as program:
        program.say("work")
        program.hear("text_delta")
        program.process.kill()
    deadline = time.monotonic() + PATIENCE
    while processes_of(run_id):
        assert time.monotonic() < deadline, "somebody survived"
        time.sleep(0.02)


def test_lines_may_come_from_a_terminal(installed: Installed) -> None:
    master, slave = pty.openpty()
    process = subprocess.Popen(
        installed.command(["run", "-i", "scripted", "--json"]), env=installed.environment(TALKER), stdin=slave,
        stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, cwd=installed.home,
    )  # fmt: skip
    os.close(slave)
    os.write(master, b"hello\n\x04")
    out, _ = process.communicate(timeout=PATIENCE)
    os.close(master)
    lines = [json.loads(line) for line in out.splitlines()]
    assert validate([line for line in lines[:-1] if line["type"] not in RESPONSE_TYPES]) == []
    assert (process.returncode, lines[-1]["text"]) == (0, "you said hello")


def test_retries_are_for_every_run(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", "--json", "--retry", "2", "--retry-delay", "0", body="sys.exit(3)")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(event["attempt"], event["maxAttempts"]) for event in events if event["type"] == "retry"] == [(1, 2)]
    assert done.returncode == 12
