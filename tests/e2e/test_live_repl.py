"""Interactive runs of real CLIs, at a terminal and over JSONL pipes."""

from tests.e2e.harness import LiveAgent, assert_nothing_left
from tests.e2e.terminal import AMUX, environment
from tests.e2e.ways import ALL_AGENTS, CORE
from tests.process.conversations import JsonlClient
from tests.pseudo_terminal import PseudoTerminal
from ulid import ULID

from agent_mux_testing.live import Say, Shell

HANGS = "A long text that hangs here."


def at_terminal(live: LiveAgent, *flags: str) -> PseudoTerminal:
    """Start an interactive run at a pseudo-terminal."""
    command = [str(AMUX), "run", "-i", *live.agent_arguments, "--no-color", *flags]
    surroundings = {**environment(live), "TERM": "xterm-256color"}
    return PseudoTerminal(command, surroundings, live.workspace, patience=live.kit.patience)


def over_jsonl(live: LiveAgent, *flags: str) -> JsonlClient:
    """Start an interactive run with JSONL on stdin and stdout."""
    command = [str(AMUX), "run", "-i", *live.agent_arguments, "--json", *flags]
    return JsonlClient(command, environment(live), live.workspace, patience=live.kit.patience)


@CORE
@ALL_AGENTS
def test_repl(live: LiveAgent) -> None:
    live.script(live.answer(Say(HANGS), hang=True), live.answer(Say("Continued.")))
    run_id = str(ULID())
    with at_terminal(live, "--yolo", "--run-id", run_id) as talk:
        talk.wait_for_line(">")
        talk.enter("begin")
        talk.wait_for_line(HANGS)
        talk.type("\x03")
        talk.wait_for_line("interrupted; press Ctrl-C again to abort the run")
        talk.wait_for_line(">")
        talk.enter("go on")
        talk.wait_for_line("Continued.")
        talk.enter("/exit")
        shown = talk.wait_for_exit(0)
    assert [line for line in shown if line.startswith("+ completed 2 turns")]
    assert live.model.received("go on")
    assert_nothing_left(run_id)


@ALL_AGENTS
def test_repl_jsonl(live: LiveAgent) -> None:
    live.script(live.answer(Say(HANGS), hang=True), live.answer(Say("Continued.")))
    with over_jsonl(live, "--yolo") as talk:
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
    assert live.model.received("go on")


def test_repl_approval(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("Made it.")))
    with at_terminal(live) as talk:
        talk.wait_for_line(">")
        talk.enter("make it")
        talk.wait_for_line("[y]es / [n]o / [a]lways?")
        assert not live.file("made").exists()
        talk.enter("y")
        talk.wait_for_line("Made it.")
        talk.enter("/exit")
        talk.wait_for_exit(0)
    assert live.file("made").exists()


def test_repl_jsonl_approval(live: LiveAgent) -> None:
    live.script(live.answer(Shell("touch made", asks=True)), live.answer(Say("As you like.")))
    with over_jsonl(live) as talk:
        talk.send("make it")
        asked = talk.expect("approval_request")
        talk.send(type="deny", interactionId=asked["interactionId"], reason="not now")
        talk.expect("ack", command="deny")
        talk.expect("turn_end")
        talk.close_input()
        assert talk.wait_for_exit(0)["text"] == "As you like."
    assert not live.file("made").exists()
