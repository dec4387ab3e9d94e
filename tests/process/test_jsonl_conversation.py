"""`amux run -i --json`: JSON lines as input and output."""

import json
import signal
import subprocess
import time
from pathlib import Path

import pytest
from tests.process.conversations import CHAT_AGENT, start_jsonl
from tests.process.installed_command import PATIENCE, Installed
from tests.pseudo_terminal import PseudoTerminal
from ulid import ULID

from agent_mux import validate
from agent_mux.process.marker import processes_of
from agent_mux.run.commands import RESPONSE_TYPES

pytestmark = pytest.mark.skipif(not Path("/proc/self/environ").exists(), reason="needs /proc")


@pytest.fixture
def installed(tmp_path: Path) -> Installed:
    return Installed(tmp_path)


@pytest.mark.slow
def test_lines_are_prompts_and_end_of_input_closes_the_session(installed: Installed) -> None:
    with start_jsonl(installed) as session:
        session.send("hello")
        assert session.expect("ack", command="prompt") == {"type": "ack", "command": "prompt", "delivery": "applied"}
        session.expect("message_stop", text="echo hello")
        session.send("")
        session.send("/exit is a prompt, too")
        session.expect("message_stop", text="echo /exit is a prompt, too")
        session.close_input()
        result = session.wait_for_exit(0)
        assert (result["exitReason"], result["turnCount"]) == ("completed", 2)
        assert session.warnings == ""


@pytest.mark.slow
def test_prompts_before_the_end_of_input_are_completed(installed: Installed) -> None:
    lines = ["one", '{"type":"prompt","text":"{two}"}', "three"]
    for stdin in ("\n".join(lines) + "\n", "\n".join(lines)):
        done = installed.run("run", "-i", "scripted", body=CHAT_AGENT, stdin=stdin.encode())  # between two pipes
        *events, last = map(json.loads, done.stdout.splitlines())
        assert done.returncode == 0
        assert [line["text"] for line in events if line["type"] == "message_stop"] == [
            "echo one", "echo {two}", "echo three",
        ]  # fmt: skip
        assert last["type"] == "run_result"


@pytest.mark.slow
def test_file_is_read_like_a_pipe(installed: Installed, tmp_path: Path) -> None:
    path = tmp_path / "lines"
    path.write_text("one\ntwo")
    with path.open() as lines:
        done = subprocess.run(
            installed.command(["run", "-i", "scripted", "--json"]), env=installed.environment(CHAT_AGENT), stdin=lines,
            capture_output=True, timeout=PATIENCE, check=False, cwd=installed.home,
        )  # fmt: skip
    assert done.returncode == 0
    assert json.loads(done.stdout.splitlines()[-1])["text"] == "echo two"
    nothing = installed.run("run", "-i", "scripted", "--json", body=CHAT_AGENT)  # /dev/null
    assert (nothing.returncode, json.loads(nothing.stdout.splitlines()[-1])["exitReason"]) == (0, "completed")


@pytest.mark.slow
def test_first_prompt_may_be_an_argument(installed: Installed) -> None:
    done = installed.run("run", "-i", "scripted", "hello", "--json", body=CHAT_AGENT, stdin=b"")
    assert (done.returncode, json.loads(done.stdout.splitlines()[-1])["text"]) == (0, "echo first")


@pytest.mark.slow
def test_deliveries_interrupt_and_status_are_acknowledged(installed: Installed) -> None:
    with start_jsonl(installed, "--model", "m1") as session:
        session.send(type="prompt", text="work", id=1)
        assert session.expect("ack", id=1)["delivery"] == "applied"
        session.expect("text_delta", delta="working")
        session.send(type="queue", text="later", id=2)
        assert session.expect("ack", id=2)["delivery"] == "queued"
        session.send(type="steer", text="now", id="three")
        assert session.expect("ack", id="three")["delivery"] == "merged"
        session.send(type="status", id=4)
        status = session.expect("ack", id=4)
        shown = (status["agent"], status["model"], status["state"], status["busy"], status["turnCount"])
        assert shown == ("scripted", "m1", "running", True, 1)
        session.send(type="interrupt", id=5)
        session.expect("ack", id=5, command="interrupt")
        session.expect("error", code="ABORTED", recoverable=True)
        session.expect("message_stop", text="echo now")
        session.send("cost")
        session.expect("message_stop", text="spent")
        session.expect("turn_end")
        session.send(type="status")
        status = session.expect("ack", command="status")
        assert (status["busy"], status["cost"]["totalUsd"], status["tokenUsage"]["inputTokens"]) == (False, 0.5, 1200)
        session.send(type="close", id=6)
        session.expect("ack", id=6)
        session.wait_for_exit(0)


@pytest.mark.slow
def test_approval_waits_for_a_command(installed: Installed) -> None:
    with start_jsonl(installed) as session:
        for command, answer in ((("approve", {"always": True}), "yes"), (("deny", {"reason": "no"}), "no")):
            session.send("ask rm -rf /")
            asked = session.expect("approval_request", detail="rm -rf /")
            session.send(type="status")
            (pending,) = session.expect("ack", command="status")["pending"]
            assert (pending["interactionId"], pending["type"]) == (asked["interactionId"], "approval")
            assert (pending["description"], pending["detail"]["command"]) == ("run: rm -rf /", "rm -rf /")
            name, fields = command
            session.send(type=name, interactionId=asked["interactionId"], **fields)
            session.expect("ack", command=name)
            session.expect("message_stop", text=f"it was {answer}")
        session.send(type="approve", interactionId=asked["interactionId"], id=9)
        assert session.expect("command_error", id=9)["error"]["code"] == "INTERACTION_NOT_FOUND"
        session.close_input()
        session.wait_for_exit(0)


@pytest.mark.slow
@pytest.mark.parametrize(("fields", "answer"), [({"text": "mauve"}, "mauve"), ({"option": 1}, "blue")])
def test_question_waits_for_a_command(installed: Installed, fields: dict[str, object], answer: str) -> None:
    with start_jsonl(installed, "--yolo") as session:
        session.send("question which?")
        asked = session.expect("input_required", question="which?")
        session.send(type="approve", interactionId=asked["interactionId"])
        assert session.expect("command_error", command="approve")["error"]["code"] == "VALIDATION_ERROR"
        session.send(type="answer", interactionId=asked["interactionId"], **fields)
        session.expect("message_stop", text=f"so {answer}")
        session.close_input()
        session.wait_for_exit(0)


def test_requests_after_the_end_of_input_are_denied(installed: Installed) -> None:
    with start_jsonl(installed, body=CHAT_AGENT.replace("read_next('answer')", "str(read_next('answer'))")) as session:
        session.send("ask first")
        session.expect("approval_request")
        session.send("ask second")
        session.close_input()
        assert session.wait_for_exit(0)["text"] == "it was None"  # the agent's input is closed by then
        assert [line["type"] for line in session.lines].count("approval_denied") == 2
        assert session.warnings.count("warning: no terminal to ask on") == 1


def test_non_interactive_denies_requests(installed: Installed) -> None:
    with start_jsonl(installed, "--non-interactive") as session:
        session.send("ask first")
        session.expect("message_stop", text="it was no")
        session.close_input()
        session.wait_for_exit(0)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("line", "expected"),
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
def test_invalid_lines_are_reported_and_the_run_continues(
    installed: Installed, line: str, expected: dict[str, object]
) -> None:
    with start_jsonl(installed) as session:
        session.send(line)
        wrong = session.expect("command_error")
        assert {name: wrong[name] for name in wrong if name not in {"type", "error"}} == expected
        assert wrong["error"]["code"] == "VALIDATION_ERROR"
        session.send("hello")
        session.expect("message_stop", text="echo hello")
        session.close_input()
        session.wait_for_exit(0)


@pytest.mark.slow
def test_refused_commands_are_reported(installed: Installed) -> None:
    with start_jsonl(installed) as session:
        session.send(type="steer", text="never mind", id=1)
        assert session.expect("command_error", id=1)["error"]["code"] == "CAPABILITY_ERROR"
        session.send(type="resume", id=2)
        assert session.expect("command_error", id=2)["error"]["code"] == "INVALID_STATE_TRANSITION"
        session.send(type="interrupt", id=3)
        assert session.expect("command_error", id=3)["error"]["code"] == "INVALID_STATE_TRANSITION"
        session.close_input()
        session.wait_for_exit(0)


@pytest.mark.slow
def test_paused_run_resumes_and_closes(installed: Installed) -> None:
    with start_jsonl(installed) as session:
        session.expect("session_start")
        session.send(type="pause")
        session.expect("paused")
        session.send(type="resume")
        session.expect("resumed")
        session.send("hello")
        session.expect("turn_end")
        session.send(type="pause")
        session.expect("paused")
        session.close_input()  # a stopped process cannot exit by itself
        session.wait_for_exit(0)


@pytest.mark.slow
def test_abort_is_acknowledged_and_ends_the_run(installed: Installed) -> None:
    with start_jsonl(installed, "--grace-period", "1") as session:
        session.send("work")
        session.expect("text_delta")
        session.send(type="abort", id=1)
        session.expect("ack", id=1)
        session.expect("aborted")
        assert session.wait_for_exit(13)["exitReason"] == "aborted"


@pytest.mark.slow
def test_crashed_agent_ends_the_command_while_its_input_is_open(installed: Installed) -> None:
    with start_jsonl(installed) as session:
        session.send("die")
        assert session.wait_for_exit(12)["exitReason"] == "crashed"


@pytest.mark.slow
def test_budget_ends_the_command_while_its_input_is_open(installed: Installed) -> None:
    with start_jsonl(installed, "--max-cost", "0.1") as session:
        session.send("cost")
        result = session.wait_for_exit(16)
        assert (result["exitReason"], result["error"]["code"]) == ("budget", "BUDGET_EXCEEDED")


@pytest.mark.slow
def test_closed_reader_ends_the_command(installed: Installed) -> None:
    run_id = str(ULID())
    with start_jsonl(installed, "--run-id", run_id, "--grace-period", "1") as session:
        session.send("work")
        session.expect("text_delta")
        assert session.process.stdout is not None
        session.process.stdout.close()
        assert session.process.wait(PATIENCE) == 141
    assert processes_of(run_id) == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGQUIT])
def test_signal_ends_the_command(installed: Installed, number: signal.Signals) -> None:
    with start_jsonl(installed, "--grace-period", "1") as session:
        session.send("work")
        session.expect("text_delta")
        session.process.send_signal(number)
        session.wait_for_exit(13)
        assert number.name in session.warnings


def test_sigkill_leaves_no_process(installed: Installed) -> None:
    run_id = str(ULID())
    with start_jsonl(installed, "--run-id", run_id) as session:
        session.send("work")
        session.expect("text_delta")
        session.process.kill()
    deadline = time.monotonic() + PATIENCE
    while processes_of(run_id):
        assert time.monotonic() < deadline, "a process survived"
        time.sleep(0.02)


@pytest.mark.slow
def test_lines_are_read_from_a_terminal(installed: Installed) -> None:
    command = ["/bin/sh", "-c", 'exec "$@" > out 2> /dev/null', "sh"]
    command += installed.command(["run", "-i", "scripted", "--json"])
    with PseudoTerminal(command, installed.environment(CHAT_AGENT), installed.home) as terminal:
        terminal.type("hello\n\x04")
        code = terminal.finish()
    lines = [json.loads(line) for line in (installed.home / "out").read_text().splitlines()]
    assert validate([line for line in lines[:-1] if line["type"] not in RESPONSE_TYPES]) == []
    assert (code, lines[-1]["text"]) == (0, "echo hello")


@pytest.mark.slow
def test_retry_flags_retry_the_run(installed: Installed) -> None:
    done = installed.run("run", "scripted", "hi", "--json", "--retry", "2", "--retry-delay", "0", body="sys.exit(3)")
    events = [json.loads(line) for line in done.stdout.splitlines()]
    assert [(event["attempt"], event["maxAttempts"]) for event in events if event["type"] == "retry"] == [(1, 2)]
    assert done.returncode == 12
