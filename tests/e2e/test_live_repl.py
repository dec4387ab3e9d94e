"""A conversation with a real CLI, by a person at a terminal and by a program through JSONL."""

from tests.e2e.harness import Live, nothing_left
from tests.e2e.terminal import AMUX, environment
from tests.e2e.ways import CORE, EVERYONE
from tests.process.conversations import JsonlClient, ReplTerminal
from ulid import ULID

from agent_mux_testing.live import Say, Shell

HANGS = "A long text that hangs here."


def person(live: Live, *flags: str) -> ReplTerminal:
    """Somebody at a terminal."""
    command = [str(AMUX), "run", "-i", *live.named, "--no-color", *flags]
    return ReplTerminal(command, {**environment(live), "TERM": "xterm-256color"}, live.workspace)


def program(live: Live, *flags: str) -> JsonlClient:
    """A program between two pipes."""
    return JsonlClient([str(AMUX), "run", "-i", *live.named, "--json", *flags], environment(live), live.workspace)


@CORE
@EVERYONE
def test_repl(live: Live) -> None:
    live.script(live.answer(Say(HANGS), hang=True), live.answer(Say("Continued.")))
    run_id = str(ULID())
    with person(live, "--yolo", "--run-id", run_id) as talk:
        talk.wait_for_line(">")
        talk.enter("begin")
        talk.wait_for_line(HANGS)
        talk.type("\x03")
        talk.wait_for_line("interrupted; Ctrl-C once more ends the run")
        talk.wait_for_line(">")
        talk.enter("go on")
        talk.wait_for_line("Continued.")
        talk.enter("/exit")
        shown = talk.wait_for_exit(0)
    assert [line for line in shown if line.startswith("+ completed 2 turns")]
    assert live.model.heard("go on")
    nothing_left(run_id)


@EVERYONE
def test_repl_jsonl(live: Live) -> None:
    live.script(live.answer(Say(HANGS), hang=True), live.answer(Say("Continued.")))
    with program(live, "--yolo") as talk:
        talk.send("begin")
        talk.expect("ack", command="prompt")
        talk.expect("text_delta")
        talk.send(type="interrupt", id=1)
        talk.expect("ack", id=1)
        talk.expect("turn_end")
        talk.send(type="prompt", text="go on", id=2)
        talk.expect("ack", id=2)
        talk.expect("turn_end")
        talk.close_input()
        result = talk.wait_for_exit(0)
    assert (result["exitReason"], result["text"]) == ("completed", "Continued.")
    assert result["ledger"]["unknown"] == {}
    assert live.model.heard("go on")


def test_repl_asks(live: Live) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    with person(live) as talk:
        talk.wait_for_line(">")
        talk.enter("make it")
        talk.wait_for_line("[y]es / [n]o / [a]lways?")
        assert not live.file("made").exists()
        talk.enter("y")
        talk.wait_for_line("Made it.")
        talk.enter("/exit")
        talk.wait_for_exit(0)
    assert live.file("made").exists()


def test_repl_jsonl_asks(live: Live) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    with program(live) as talk:
        talk.send("make it")
        asked = talk.expect("approval_request")
        talk.send(type="deny", interactionId=asked["interactionId"], reason="not now")
        talk.expect("ack", command="deny")
        talk.expect("turn_end")
        talk.close_input()
        assert talk.wait_for_exit(0)["text"] == "As you like."
    assert not live.file("made").exists()
