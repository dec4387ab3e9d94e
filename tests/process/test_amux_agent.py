"""The real program `amux-agent` with a scripted model: its events conform for every input and every kind of end."""

import json
import os
import signal
import stat
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from tests.process.control_client import wait_for
from tests.process.embedded_agent import COMMAND, PATIENCE, Sandbox, violations
from tests.pseudo_terminal import PseudoTerminal

from agent_mux.events import event_from_dict


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def shell(command: str) -> dict[str, Any]:
    return {"tool_calls": [{"name": "shell", "arguments": {"command": command}}]}


SLEEP = shell("echo begun; sleep 60")


# -- prompts


@pytest.mark.slow
def test_prompt_is_answered_and_end_of_input_ends_the_run(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script({"text": "Hello."})) as agent:
        first = agent.read_until("session_start")
        assert first["model"] == "script"
        agent.send("prompt", id="1", text="hi")
        assert agent.read_until("response", id="1") == {
            "type": "response", "id": "1", "accepted": True, "delivery": "applied",
        }  # fmt: skip
        agent.read_until("turn_end")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Hello."]
        assert agent.lines[-1]["type"] == "session_end"
        assert "accumulated" not in agent.lines_of("text_delta")[0]


@pytest.mark.slow
def test_prompts_are_queued_and_all_answered(sandbox: Sandbox) -> None:
    model = sandbox.script({"text": "One."}, {"text": "Two."}, {"text": "Three."})
    with sandbox.controlled(model=model, interactive=True) as agent:
        for number in "123":
            agent.send("prompt", id=number, text=f"prompt {number}")
        agent.send("close", id="4")
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["One.", "Two.", "Three."]
        assert [line["delivery"] for line in agent.lines_of("response")[:3]] == ["applied", "queued", "queued"]
        assert [line["turnIndex"] for line in agent.lines_of("turn_start")] == [0, 1, 2]


@pytest.mark.slow
def test_run_without_input_starts_and_ends_in_order(sandbox: Sandbox) -> None:
    done = sandbox.run("--control", AMUX_AGENT_MODEL="scripted:demo")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert (done.returncode, done.stderr, violations(lines)) == (0, "", [])
    assert [line["type"] for line in lines] == ["session_start", "session_end"]


@pytest.mark.slow
def test_prompt_without_a_start_line_is_accepted(sandbox: Sandbox) -> None:
    done = sandbox.run(
        "--control", stdin='{"type":"prompt","text":"hi"}\n', AMUX_AGENT_MODEL=sandbox.script({"text": "Hello."})
    )
    assert done.returncode == 0
    assert '"text":"Hello."' in done.stdout


@pytest.mark.slow
def test_steering_message_reaches_the_next_model_call(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("sleep 1"), {"when": "faster", "text": "I hurry."}, closing="no steering message")
    with sandbox.controlled(model=model, approvalMode="yolo") as agent:
        agent.send("prompt", text="work")
        agent.read_until("shell_start")
        agent.send("steer", id="s", text="faster")
        assert agent.read_until("response", id="s")["delivery"] == "merged"
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["I hurry."]
        assert len(agent.lines_of("turn_start")) == 1


@pytest.mark.slow
def test_follow_up_is_processed_before_the_turn_ends(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("sleep 1"), {"text": "Done."}, {"when": "and then", "text": "That too."})
    with sandbox.controlled(model=model, approvalMode="yolo") as agent:
        agent.send("prompt", text="work")
        agent.read_until("shell_start")
        agent.send("follow_up", id="f", text="and then")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Done.", "That too."]
        assert len(agent.lines_of("turn_start")) == 1


@pytest.mark.slow
def test_model_continues_after_an_empty_answer_to_tool_results(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("true"), {"text": ""}, {"when": "last answer was empty", "text": "Done."})
    done = sandbox.run("--approval-mode=yolo", "work", AMUX_AGENT_MODEL=model)
    assert (done.returncode, done.stdout.strip()) == (0, "Done.")


@pytest.mark.slow
def test_invalid_lines_are_refused_and_change_nothing(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script({"text": "Hello."})) as agent:
        agent.write(b'{\n[]\n\xff\xff\n\n{"type":"dance","id":"d"}\n{"type":"prompt","id":"p"}\n')
        agent.write(b'{"type":"start","id":"again"}\n{"type":"approve","id":"a","requestId":"unknown"}\n')
        agent.send("interrupt", id="i")
        agent.send("prompt", text="hi")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Hello."]
        refused = [(line.get("id"), line["code"]) for line in agent.lines_of("response")]
        assert refused == [
            (None, "VALIDATION_ERROR"), (None, "VALIDATION_ERROR"), (None, "VALIDATION_ERROR"),
            ("p", "VALIDATION_ERROR"), ("again", "VALIDATION_ERROR"), ("a", "INTERACTION_NOT_FOUND"),
            ("i", "INVALID_STATE_TRANSITION"),
        ]  # fmt: skip


# -- approvals and questions


def test_approved_command_runs_and_always_asks_once(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("echo one > a"), shell("echo one > a"), {"text": "Done."})
    with sandbox.controlled(model=model, approvalMode="prompt") as agent:
        agent.send("prompt", text="work")
        asked = agent.read_until("approval_request")
        assert (asked["command"], asked["riskLevel"]) == ("echo one > a", "medium")
        assert not (sandbox.work / "a").exists()
        agent.send("approve", id="y", requestId=asked["interactionId"], always=True)
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert (sandbox.work / "a").read_text() == "one\n"
        assert len(agent.lines_of("approval_request")) == len(agent.lines_of("approval_granted")) == 1
        assert len(agent.lines_of("shell_exit")) == 2


@pytest.mark.slow
def test_denial_reason_reaches_the_model(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("touch a"), {"when": "not today", "text": "Then not."}, closing="no answer")
    with sandbox.controlled(model=model, approvalMode="prompt") as agent:
        agent.send("prompt", text="work")
        agent.send("deny", requestId=agent.read_until("approval_request")["interactionId"], reason="not today")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Then not."]
        assert [line["reason"] for line in agent.lines_of("approval_denied")] == ["not today"]
        assert agent.lines_of("shell_start") == []
        assert not (sandbox.work / "a").exists()


@pytest.mark.slow
def test_end_of_input_denies_pending_requests(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("touch a"), {"when": "no user is available", "text": "Alone."}, closing="no answer")
    with sandbox.controlled(model=model, approvalMode="prompt") as agent:
        agent.send("prompt", text="work")
        agent.read_until("approval_request")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Alone."]


@pytest.mark.slow
def test_deny_mode_blocks_at_once_and_allows_reads(sandbox: Sandbox) -> None:
    (sandbox.work / "a").write_text("content")
    read = {"tool_calls": [{"name": "read_file", "arguments": {"path": "a"}}]}
    with sandbox.controlled(
        model=sandbox.script(read, shell("touch b"), {"text": "Done."}), approvalMode="deny"
    ) as agent:
        agent.send("prompt", text="work")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert [line["path"] for line in agent.lines_of("file_read")] == ["a"]
        assert agent.lines_of("approval_request") == []
        assert len(agent.lines_of("approval_denied")) == 1
        assert not (sandbox.work / "b").exists()


@pytest.mark.slow
def test_question_is_answered(sandbox: Sandbox) -> None:
    ask = {"tool_calls": [{"name": "ask_user", "arguments": {"question": "Which?", "options": ["red", "blue"]}}]}
    model = sandbox.script(ask, {"when": "blue", "text": "Blue it is."}, closing="no answer")
    with sandbox.controlled(model=model) as agent:
        agent.send("prompt", text="paint")
        asked = agent.read_until("input_required")
        assert (asked["question"], asked["options"]) == ("Which?", ["red", "blue"])
        agent.send("answer", id="a", requestId=asked["interactionId"], text="blue")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Blue it is."]


# -- stopping


@pytest.mark.slow
@pytest.mark.parametrize("by_signal", [False, True])
def test_interrupted_turn_ends_and_the_program_continues(sandbox: Sandbox, by_signal: bool) -> None:
    model = sandbox.script(SLEEP, {"text": "Here again."})
    with sandbox.controlled(model=model, approvalMode="yolo", interactive=True) as agent:
        agent.send("prompt", text="work")
        agent.read_until("shell_stdout_delta")
        if by_signal:
            agent.process.send_signal(signal.SIGINT)
        else:
            agent.send("interrupt", id="i")
        agent.read_until("turn_end")
        agent.send("prompt", text="and now?")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Here again."]
        assert [line["code"] for line in agent.lines_of("error")] == ["ABORTED"]
        assert agent.lines_of("interrupted", "aborted") == []


@pytest.mark.slow
@pytest.mark.parametrize("number", [None, signal.SIGTERM, signal.SIGQUIT, signal.SIGHUP])
def test_cancelled_run_ends_with_aborted(sandbox: Sandbox, number: signal.Signals | None) -> None:
    with sandbox.controlled(model=sandbox.script(SLEEP), approvalMode="yolo") as agent:
        agent.send("prompt", text="work")
        agent.read_until("shell_stdout_delta")
        if number is not None:
            agent.process.send_signal(number)
        else:
            agent.send("cancel")
        assert agent.wait_for_exit() == 0
        assert [line["type"] for line in agent.lines[-3:]] == ["turn_end", "aborted", "session_end"]


@pytest.mark.slow
def test_sigint_between_turns_ends_the_run(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script({"text": "Hello."}), interactive=True) as agent:
        agent.send("prompt", text="hi")
        agent.read_until("turn_end")
        agent.process.send_signal(signal.SIGINT)
        assert agent.wait_for_exit() == 0
        assert agent.lines_of("interrupted", "aborted", "error") == []


@pytest.mark.slow
def test_killed_program_leaves_a_conforming_prefix(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script(SLEEP), approvalMode="yolo") as agent:
        agent.send("prompt", text="work")
        agent.read_until("shell_stdout_delta")
        os.killpg(agent.process.pid, signal.SIGKILL)
        assert violations(agent.lines, complete=False) == []


@pytest.mark.slow
def test_closed_output_ends_the_program_quietly(sandbox: Sandbox) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--json", f"--model={sandbox.script(SLEEP)}", "--approval-mode=yolo", "hi"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=sandbox.work,
        env=sandbox.environment, start_new_session=True,
    )  # fmt: skip
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.readline()
    process.stdout.close()
    try:
        assert process.wait(PATIENCE) == 141
        assert process.stderr.read() == b""
    finally:
        process.stderr.close()
        if process.poll() is None:
            os.killpg(process.pid, signal.SIGKILL)


# -- failures and limits


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "event", "code"),
    [
        ("auth", "auth_error", None),
        ("context_exceeded", "context_exceeded", None),
        ("provider", "error", "AGENT_CRASH"),
    ],
)
def test_model_error_ends_the_run_with_its_terminal_event(
    sandbox: Sandbox, kind: str, event: str, code: str | None
) -> None:
    failing = {"error": {"kind": kind, "message": "request failed"}, "repeat": True}
    with sandbox.controlled(model=sandbox.script(failing)) as agent:
        agent.send("prompt", text="hi")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.lines[-2]["type"] == event
        assert agent.lines[-2].get("code") == code


@pytest.mark.slow
def test_turn_limit_ends_the_run(sandbox: Sandbox) -> None:
    again = {**shell("true"), "repeat": True}
    with sandbox.controlled(model=sandbox.script(again), approvalMode="yolo", maxTurns=3) as agent:
        agent.send("prompt", text="work")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert [line["type"] for line in agent.lines[-2:]] == ["turn_limit", "session_end"]
        assert len(agent.lines_of("step_start")) == 3


@pytest.mark.slow
def test_budget_covers_all_turns_and_ends_the_run(sandbox: Sandbox) -> None:
    step = {"text": "Hello.", "usage": {"input_tokens": 60, "output_tokens": 1}, "repeat": True}
    with sandbox.controlled(model=sandbox.script(step), maxTokensTotal=100, interactive=True) as agent:
        for _ in range(3):
            agent.send("prompt", text="hi")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert [line["type"] for line in agent.lines[-2:]] == ["error", "session_end"]
        assert agent.lines[-2]["code"] == "BUDGET_EXCEEDED"
        assert agent.messages() == ["Hello.", "Hello."]


@pytest.mark.slow
def test_schema_answer_is_the_last_message_and_structured_output(sandbox: Sandbox) -> None:
    schema = {"type": "object", "properties": {"sum": {"type": "integer"}}, "required": ["sum"]}
    model = sandbox.script({"text": '{"sum": 4}'})
    with sandbox.controlled(model=model, outputSchema=schema) as agent:
        agent.send("prompt", text="2 + 2")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.lines_of("turn_end")[0]["structuredOutput"] == {"sum": 4}
        assert json.loads(agent.messages()[-1]) == {"sum": 4}


# -- sessions, memory, images


def session_id_of(sandbox: Sandbox, *flags: str, text: str = "First.") -> str:
    done = sandbox.run("--json", f"--model={sandbox.script({'text': text})}", *flags, "hi")
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[0])["sessionId"]
    assert isinstance(found, str)
    return found


@pytest.mark.slow
def test_session_is_resumed_and_its_file_is_private(sandbox: Sandbox) -> None:
    session_id = session_id_of(sandbox)
    stored = sandbox.home / "sessions" / f"{session_id}.json"
    assert stat.S_IMODE(stored.stat().st_mode) == 0o600
    assert stat.S_IMODE(stored.parent.stat().st_mode) == 0o700
    with sandbox.controlled(model=sandbox.script({"text": "Second."}), sessionId=session_id) as agent:
        assert agent.read_until("session_resume")["priorTurnCount"] == 1
        agent.send("prompt", text="and?")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert (agent.lines[0]["sessionId"], agent.lines[-1]["turnCount"]) == (session_id, 2)
    shown = sandbox.run("sessions", session_id)
    assert shown.stdout == "> hi\n< First.\n> and?\n< Second.\n"


@pytest.mark.slow
def test_fork_copies_the_history_under_a_new_id(sandbox: Sandbox) -> None:
    session_id = session_id_of(sandbox)
    forked = session_id_of(sandbox, f"--fork={session_id}", text="Other.")
    assert forked != session_id
    assert sandbox.run("sessions", forked).stdout == "> hi\n< First.\n> hi\n< Other.\n"
    assert sandbox.run("sessions", session_id).stdout == "> hi\n< First.\n"
    listed = sandbox.run("sessions").stdout.splitlines()
    assert sorted(line.split()[0] for line in listed) == sorted([forked, session_id])


@pytest.mark.slow
def test_fork_reports_the_number_of_prior_turns(sandbox: Sandbox) -> None:
    session_id = session_id_of(sandbox)
    with sandbox.controlled(model=sandbox.script({"text": "Other."}), forkSessionId=session_id) as agent:
        agent.send("prompt", text="and?")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        first, last = agent.lines[0], agent.lines[-1]
        assert (first["forkedFrom"], first["priorTurns"], first["resumed"]) == (session_id, 1, False)
        assert last["turnCount"] == 2


@pytest.mark.slow
def test_no_session_stores_nothing(sandbox: Sandbox) -> None:
    done = sandbox.run("--json", "--no-session", f"--model={sandbox.script({'text': 'Hello.'})}", "hi")
    assert json.loads(done.stdout.splitlines()[0])["sessionId"].startswith("transient-")
    assert not sandbox.home.exists()


@pytest.mark.slow
@pytest.mark.parametrize("field", ["sessionId", "forkSessionId"])
@pytest.mark.parametrize("name", ["unknown", "../../etc/passwd"])
def test_unknown_session_is_a_terminal_error(sandbox: Sandbox, field: str, name: str) -> None:
    with sandbox.controlled(model=sandbox.script({"text": "Hello."}), **{field: name}) as agent:
        assert agent.wait_for_exit() == 0
        assert agent.lines[-2]["type"] == "error"
        assert agent.lines[-2]["recoverable"] is False
        if name == "unknown":
            assert agent.lines[-2]["code"] == "SESSION_NOT_FOUND"


@pytest.mark.slow
def test_agents_md_and_skills_are_read(sandbox: Sandbox) -> None:
    (sandbox.work / "AGENTS.md").write_text("Use tabs.")
    skill = sandbox.work / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF files.\n---\nDo it.\n")
    done = sandbox.run("--json", "--skills=skills", f"--model={sandbox.script({'text': 'Hello.'})}", "hi")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert violations(lines) == []
    assert [line["path"] for line in lines if line["type"] == "agentdoc_read"] == [str(sandbox.work / "AGENTS.md")]
    assert [line["skillName"] for line in lines if line["type"] == "skill_loaded"] == ["pdf"]


@pytest.mark.slow
def test_skill_of_a_trusted_project_is_activated_read_and_its_script_runs(sandbox: Sandbox) -> None:
    skill = sandbox.work / ".claude" / "skills" / "pdf"
    skill.mkdir(parents=True)
    (skill / "SKILL.md").write_text("---\nname: pdf\ndescription: Reads PDF files.\n---\nRun count.sh.\n")
    (skill / "count.sh").write_text("echo counted $1")
    steps = [
        {"tool_calls": [{"name": "skills_use", "arguments": {"name": "pdf"}}]},
        {
            "tool_calls": [
                {"name": "skills_run_script", "arguments": {"name": "pdf", "path": "count.sh", "args": ["7"]}}
            ]
        },
        {"text": "{{result}}"},
    ]
    model = f"--model={sandbox.script(*steps)}"
    done = sandbox.run("--json", "--approval-mode=yolo", "--trust-project-skills", model, "count")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert violations(lines) == []
    assert [line["skillName"] for line in lines if line["type"] == "skill_invoked"] == ["pdf"]
    [command] = [line["command"] for line in lines if line["type"] == "shell_start"]
    assert command == f"{skill}/count.sh 7"
    assert [line["exitCode"] for line in lines if line["type"] == "shell_exit"] == [0]
    untrusted = sandbox.run("--json", model, "count")
    assert "the project is not trusted" in untrusted.stdout
    assert "skill_loaded" not in untrusted.stdout


@pytest.mark.slow
def test_image_is_acknowledged(sandbox: Sandbox) -> None:
    image = sandbox.work / "p.png"
    image.write_bytes(b"\x89PNG\r\n\x1a\n")
    done = sandbox.run("--json", "--image=p.png", f"--model={sandbox.script({'text': 'Nice.'})}", "look")
    lines = [json.loads(line) for line in done.stdout.splitlines()]
    assert violations(lines) == []
    assert [line["mimeType"] for line in lines if line["type"] == "image_input_ack"] == ["image/png"]


# -- command line


@pytest.mark.slow
def test_text_output_is_the_answer_only(sandbox: Sandbox) -> None:
    model = sandbox.script({"text": "I look.", **shell("ls")}, {"text": "\x1b]0;evil\x07The answer."})
    done = sandbox.run(f"--model={model}", "--approval-mode=yolo", stdin="what is it?")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("The answer.\n")
    assert "I look." not in done.stdout


@pytest.mark.slow
def test_changes_are_denied_without_a_terminal(sandbox: Sandbox) -> None:
    done = sandbox.run(f"--model={sandbox.script(shell('touch a'), {'text': 'Done.'})}", "work")
    assert (done.returncode, done.stdout) == (0, "Done.\n")
    assert not (sandbox.work / "a").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("argv", "code", "sentence"),
    [
        (["--nonsense"], 2, "unrecognized arguments: --nonsense"),
        ([], 2, "the prompt is empty"),
        (["--model=unknown:x", "hi"], 2, "unknown provider 'unknown'"),
        (["--model=scripted:/nowhere.json", "hi"], 2, "/nowhere.json"),
        (["--model=scripted", "hi"], 2, "'scripted' lacks a script; use scripted:PATH"),
        (["--session=unknown", "hi"], 2, "session 'unknown' not found"),
        (["--image=nowhere.png", "hi"], 2, "nowhere.png cannot be read"),
        (["--output-schema-file=nowhere.json", "hi"], 2, "nowhere.json cannot be read"),
        (["--agents-doc=nowhere.md", "hi"], 2, "nowhere.md cannot be read"),
        (["sessions", "unknown"], 2, "session 'unknown' not found"),
    ],
)
def test_usage_error_is_one_sentence_and_exit_code_2(
    sandbox: Sandbox, argv: list[str], code: int, sentence: str
) -> None:
    done = sandbox.run(*argv, AMUX_AGENT_MODEL="scripted:demo")
    assert (done.returncode, done.stdout) == (code, "")
    assert sentence in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.slow
def test_failed_run_is_one_sentence_and_exit_code_1(sandbox: Sandbox) -> None:
    done = sandbox.run(f"--model={sandbox.script({'error': {'message': 'no such model'}})}", "hi")
    assert (done.returncode, done.stdout) == (1, "")
    assert "no such model" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_interrupted_run_is_exit_code_130(sandbox: Sandbox) -> None:
    process = subprocess.Popen(
        [*COMMAND, "--json", f"--model={sandbox.script(SLEEP)}", "--approval-mode=yolo", "hi"],
        stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, cwd=sandbox.work, env=sandbox.environment,
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        lines = []
        for line in process.stdout:
            lines.append(json.loads(line))
            if lines[-1]["type"] == "shell_stdout_delta":
                process.send_signal(signal.SIGINT)
        assert process.wait(PATIENCE) == 130
    assert violations(lines) == []
    assert [line["type"] for line in lines[-2:]] == ["interrupted", "session_end"]


def test_version_imports_few_modules() -> None:
    heavy = "{'anyio', 'pydantic', 'msgspec', 'agent_mux.assembler', 'argparse'}"
    body = f"import sys, agent_loop.cli.main as m; m.main(['--version']); print({heavy} & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", body], capture_output=True, text=True, check=True, timeout=PATIENCE)
    version, loaded = done.stdout.splitlines()
    assert version.startswith("amux-agent ")
    assert loaded == "set()"


@pytest.mark.slow
def test_user_at_a_terminal_is_asked(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("touch a"), {"text": "\x1b]0;evil\x07Done."})
    environment = {**sandbox.environment, "TERM": "dumb"}
    with PseudoTerminal([*COMMAND, f"--model={model}", "work"], environment, sandbox.work) as terminal:
        terminal.expect("touch a")
        terminal.expect("lways?")
        assert not (sandbox.work / "a").exists()
        terminal.type("y\n")
        terminal.expect("Done.")
        assert terminal.finish() == 0
    assert "\x1b]0;" not in terminal.output
    assert (sandbox.work / "a").exists()


# -- standard streams

COMMANDS = [["--help"], ["--version"], ["agents"], ["agents", "--help"], ["sessions"], ["sessions", "--help"],
            ["mcp", "list"], ["hi"], ["hi", "--json"], ["hi", "--version"]]  # fmt: skip


def run_into(sandbox: Sandbox, argv: list[str], redirection: str) -> "subprocess.CompletedProcess[str]":
    """Run a command line with standard streams as the redirection of a shell makes them."""
    environment = {**sandbox.environment, "AMUX_AGENT_MODEL": sandbox.script({"text": "Hello."})}
    return subprocess.run(
        ["/bin/sh", "-c", f'"$@" {redirection}', "sh", *COMMAND, *argv], stdin=subprocess.DEVNULL, capture_output=True,
        text=True, check=False, cwd=sandbox.work, env=environment, timeout=PATIENCE,
    )  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_output_without_a_reader_has_its_own_exit_code(sandbox: Sandbox, argv: list[str]) -> None:
    if argv[0] == "sessions":
        sandbox.run("hi", AMUX_AGENT_MODEL=sandbox.script({"text": "Hello."}))
    ours, theirs = os.pipe()
    os.close(ours)
    environment = {**sandbox.environment, "AMUX_AGENT_MODEL": sandbox.script({"text": "Hello."})}
    done = subprocess.run(
        [*COMMAND, *argv], stdin=subprocess.DEVNULL, stdout=theirs, stderr=subprocess.PIPE, text=True, check=False,
        cwd=sandbox.work, env=environment, timeout=PATIENCE,
    )  # fmt: skip
    os.close(theirs)
    assert (done.returncode, done.stderr) == (141, "")


@pytest.mark.slow
@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_output_that_cannot_be_written_is_an_error(sandbox: Sandbox, argv: list[str]) -> None:
    if argv[0] == "sessions":
        sandbox.run("hi", AMUX_AGENT_MODEL=sandbox.script({"text": "Hello."}))
    done = run_into(sandbox, argv, "> /dev/full")
    sentence = "amux-agent: standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, sentence)


@pytest.mark.slow
@pytest.mark.parametrize("argv", COMMANDS, ids=" ".join)
def test_closed_standard_streams_are_the_null_device(sandbox: Sandbox, argv: list[str]) -> None:
    done = run_into(sandbox, argv, "<&- >&-")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


# -- Ctrl-Z


def wait_for_state(file: Path, *, stopped: bool) -> None:
    """Wait until the process whose id is in the file is stopped, or runs again."""
    pid = int(file.read_text())
    deadline = time.monotonic() + PATIENCE
    while (Path(f"/proc/{pid}/stat").read_text().rpartition(") ")[2][0] == "T") is not stopped:
        assert time.monotonic() < deadline, pid
        time.sleep(0.02)


@pytest.mark.slow
@pytest.mark.skipif(
    not (Path("/proc/self/stat").exists() and Path("/bin/bash").exists()), reason="needs /proc and bash"
)
def test_ctrl_z_stops_the_commands_until_fg_and_does_not_count_for_their_time_limit(sandbox: Sandbox) -> None:
    go = sandbox.work / "go"
    os.mkfifo(go)
    server = {"command": "echo $$ > server; sleep 60", "background": True}
    line = "until [ -s server ]; do sleep 0.05; done; echo $$ > begun; mv begun command; read -r word < go; echo $word"
    command = {"command": line, "timeout": 5}
    model = sandbox.script(
        {"tool_calls": [{"name": "shell", "arguments": server}, {"name": "shell", "arguments": command}]},
        {"when": "arrived", "text": "It works."},
        closing="It timed out.",
    )
    environment = {
        **sandbox.environment, "AMUX_AGENT_MODEL": model, "TERM": "xterm",
        "PS1": "shell$ ", "HISTFILE": "",
    }  # fmt: skip
    with PseudoTerminal(["/bin/bash", "--norc", "--noprofile", "-i"], environment, sandbox.work) as terminal:
        terminal.expect("shell$ ")
        terminal.enter(f"{sys.executable} -m agent_loop --mode=yolo work")
        terminal.expect("read -r word")
        wait_for((sandbox.work / "command").exists)
        terminal.type("\x1a")
        terminal.expect("Stopped")
        wait_for_state(sandbox.work / "command", stopped=True)
        wait_for_state(sandbox.work / "server", stopped=True)
        time.sleep(5.5)
        terminal.enter("fg")
        wait_for_state(sandbox.work / "command", stopped=False)
        wait_for_state(sandbox.work / "server", stopped=False)
        go.write_text("arrived\n")
        terminal.expect("It works.")
        terminal.expect("shell$ ")
        terminal.enter("echo code $?")
        terminal.expect("code 0")


def test_every_line_decodes_to_an_event(sandbox: Sandbox) -> None:
    done = sandbox.run("--json", f"--model={sandbox.script({'text': 'Hello.'})}", "hi")
    for line in done.stdout.splitlines():
        plain = json.loads(line)
        assert event_from_dict(plain).type == plain["type"]
        assert None not in plain.values()


# -- killed between a tool call and its result


@pytest.mark.slow
def test_session_is_resumed_after_a_kill_between_call_and_result(sandbox: Sandbox) -> None:
    with sandbox.controlled(model=sandbox.script({"text": "First."}, SLEEP), approvalMode="yolo") as agent:
        session_id = agent.read_until("session_start")["sessionId"]
        agent.send("prompt", text="hi")
        agent.read_until("turn_end")
        agent.send("prompt", text="work")
        agent.read_until("shell_stdout_delta")
        os.killpg(agent.process.pid, signal.SIGKILL)
        agent.process.wait(PATIENCE)
    with sandbox.controlled(model=sandbox.script({"text": "Here again."}), sessionId=session_id) as agent:
        agent.send("prompt", text="continue")
        agent.end_input()
        assert agent.wait_for_exit() == 0
        assert agent.messages() == ["Here again."]
    shown = sandbox.run("sessions", session_id)
    assert shown.stdout == "> hi\n< First.\n> work\n> continue\n< Here again.\n"


@pytest.mark.slow
def test_two_processes_cannot_resume_one_session_at_the_same_time(sandbox: Sandbox) -> None:
    session_id = session_id_of(sandbox)
    with sandbox.controlled(model=sandbox.script(SLEEP), approvalMode="yolo", sessionId=session_id) as one:
        one.send("prompt", text="work")
        one.read_until("shell_stdout_delta")
        with sandbox.controlled(model=sandbox.script({"text": "Me too."}), sessionId=session_id) as other:
            other.send("prompt", text="hi")
            other.end_input()
            assert other.wait_for_exit() == 0
            failure = other.lines_of("error")[-1]
            assert "is being written by another process" in failure["message"]
            assert other.messages() == []


@pytest.mark.slow
def test_closed_terminal_ends_the_program_and_its_command(sandbox: Sandbox) -> None:
    model = sandbox.script(shell("echo $$ > pid; echo begun; sleep 61"))
    environment = {**sandbox.environment, "TERM": "xterm"}
    command = [*COMMAND, "--approval-mode=yolo", f"--model={model}", "hi"]
    with PseudoTerminal(command, environment, sandbox.work) as terminal:
        pid = wait_for(lambda: (sandbox.work / "pid").is_file() and (sandbox.work / "pid").read_text().strip())
        terminal.hang_up()

        def is_over() -> bool:
            terminal.send_signal(signal.SIGHUP)  # the shell sends it, too
            return not Path(f"/proc/{pid}").exists()

        wait_for(is_over)
