"""The installed `amux run`, and the blocking client."""

import json
import signal

from tests.e2e.harness import BOUND, PROMPT, LiveAgent, assert_nothing_left, check_result, replay_journal
from tests.e2e.terminal import amux, amux_at_terminal, running_amux, wait_until
from tests.e2e.ways import ALL_AGENTS
from ulid import ULID

from agent_mux import Approve, BlockingAgentMux, validate
from agent_mux_testing.live import Edit, Say, Shell, Write

BUSY = "touch started; sleep 300"
CONTENT = "one\ntwo\n"


@ALL_AGENTS
def test_cli_text(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello from the script.")))
    printed = amux(live, "run", *live.agent_arguments, "say hello")
    assert printed.code == 0, printed
    assert printed.out == "Hello from the script.\n"
    assert live.model.received("say hello")


def test_cli_quiet(live: LiveAgent) -> None:
    live.script(live.answer(Say("Working."), Shell("touch made")), live.answer(Say("Done.")))
    printed = amux(live, "run", *live.agent_arguments, PROMPT, "--quiet", "--yolo")
    assert printed.code == 0, printed
    assert "Done." in printed.out
    assert printed.err == ""


def test_cli_json(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello from the script.")))
    printed = amux(live, "run", *live.agent_arguments, "say hello", "--json", "--yolo")
    types, result = printed.check_stream()
    assert (printed.code, printed.err) == (0, "")
    assert next(kind for kind in types if kind != "log") == "session_start"
    assert types[-1] == "session_end"
    assert result["text"] == "Hello from the script."
    assert result["exitReason"] == "completed"


def test_cli_pipeline(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello from the script.")))
    printed = amux(live, "run", *live.agent_arguments, stdin="say hello\n")
    _, result = printed.check_stream()
    assert result["text"] == "Hello from the script."
    assert live.model.received("say hello")


def test_cli_edits(live: LiveAgent) -> None:
    live.script(
        live.answer(Say("Writing."), Write("a.txt", CONTENT)),
        live.answer(Edit("a.txt", "two", "TWO")),
        live.answer(Say("All done.")),
    )
    printed = amux(live, "run", *live.agent_arguments, PROMPT, "--yolo")
    assert printed.code == 0, printed
    assert live.file("a.txt").read_text() == "one\nTWO\n"
    assert printed.out == "Writing.\n\nAll done.\n"
    assert "a.txt" in printed.err


def test_cli_denies_without_a_terminal(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    printed = amux(live, "run", *live.agent_arguments, PROMPT, "--json")
    types, result = printed.check_stream()
    assert printed.code == 0, printed
    assert "warning" in printed.err
    assert not live.file("made").exists()
    assert [kind for kind in types if kind.startswith("approval")] == ["approval_request", "approval_denied"]
    assert result["text"] == "As you like."


def test_cli_approval_at_the_terminal(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    shown = amux_at_terminal(live, "run", *live.agent_arguments, PROMPT, when="[a]lways?", type_in="y\n")
    assert shown.code == 0, shown
    assert live.file("made").exists()
    assert "touch made" in shown.out
    assert "Made it." in shown.out


def test_cli_exit_code_of_a_failure(live: LiveAgent) -> None:
    live.script(live.refusal("unauthorized", repeat=True))
    printed = amux(live, "run", *live.agent_arguments, PROMPT, "--yolo")
    assert printed.code == 5, printed
    assert "AUTH_ERROR" in printed.err
    assert printed.out == ""


def test_cli_interrupted(live: LiveAgent) -> None:
    live.script(live.answer(Say("Working."), Shell(BUSY)))
    run_id = str(ULID())
    with running_amux(
        live, "run", *live.agent_arguments, PROMPT, "--yolo", "--run-id", run_id, until="started"
    ) as process:
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=BOUND)
        assert process.returncode == 13, err
        assert_nothing_left(run_id)
    assert out.startswith("Working.")


@ALL_AGENTS
def test_cli_killed(live: LiveAgent) -> None:
    """After SIGKILL of `amux`, the agent's processes end, too, and the journal yields valid events."""
    assert live.processes() == []
    live.script(live.answer(Shell(BUSY)))
    run_id = str(ULID())
    with running_amux(
        live, "run", *live.agent_arguments, PROMPT, "--yolo", "--run-id", run_id, until="started"
    ) as process:
        assert len(live.processes()) > 2  # ourselves, the agent, and its tool
        process.kill()
        process.wait(BOUND)
        wait_until(lambda: not live.processes())
    journal = live.config_directory / "runs" / f"{run_id}.journal"
    events = replay_journal(journal)
    assert validate(events) == []
    assert [event.type for event in events[-2:]] == ["error", "session_end"]
    assert events[-2].code == "RUN_LOST"


def test_cli_replays_a_run(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello from the script.")))
    ran = amux(live, "run", *live.agent_arguments, "say hello", "--json")
    _, result = ran.check_stream()
    again = amux(live, "replay", result["journal"], "--json", "--speed", "0")
    assert again.lines[: len(ran.lines) - 1] == ran.lines[:-1]


def test_blocking_client(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    with BlockingAgentMux(config_dir=live.config_directory) as mux:
        run = mux.run(live.options(approval_mode="prompt"))
        for event in run:
            if event.type == "approval_request":
                run.respond(event.interaction_id, Approve())
        result = run.result()
    done = check_result(result)
    assert live.file("made").exists()
    assert done.result.text == "Made it."
    assert json.loads(json.dumps(result.to_dict()))["exitReason"] == "completed"
