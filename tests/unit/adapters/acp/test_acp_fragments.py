"""Fragments come in runs, and are read by a short cut: what comes between them counts all the same."""

from acp_transcript import AcpConversation

from agent_mux.sdk import facts
from agent_mux.sdk.codec import DenyAction

END = {"stopReason": "end_turn"}


def test_a_run_of_fragments_is_a_message() -> None:
    talk = AcpConversation().prompted()
    assert talk.speaks("I ") == [facts.StepBegin(), facts.TextDelta("I ")]
    assert [talk.speaks(fragment) for fragment in ("run ", "it")] == [
        [facts.TextDelta("run ")],
        [facts.TextDelta("it")],
    ]
    assert talk.speaks("Another.", messageId="2") == [facts.TextEnd(), facts.TextDelta("Another.")]


def test_a_run_of_fragments_is_a_thought_until_another_begins() -> None:
    talk = AcpConversation().prompted()
    talk.thinks("Let ", messageId="1")
    assert talk.thinks("me see", messageId="1") == [facts.ThinkingDelta("me see")]
    assert talk.thinks("Next.", messageId="2") == [facts.ThinkingEnd(), facts.ThinkingDelta("Next.")]
    assert talk.speaks("Done.") == [facts.TextDelta("Done.")]
    assert talk.thinks("More.") == [facts.ThinkingDelta("More.")]


def test_fragments_of_another_session_are_ignored() -> None:
    talk = AcpConversation().prompted()
    talk.speaks("one ")
    [other] = talk.receive_update("agent_message_chunk", "another", content={"type": "text", "text": "not ours"})
    assert isinstance(other, facts.Ignored)
    assert talk.speaks("two") == [facts.TextDelta("two")]


def test_a_run_ends_with_the_turn() -> None:
    talk = AcpConversation(interactive=True).prompted()
    talk.speaks("one ")
    talk.speaks("two")
    talk.receive_response(3, END)
    assert talk.speaks("late") == [facts.Note("x sent a message after the end of the turn: late")]


def test_a_call_that_is_denied_while_the_agent_thinks_ends_with_its_next_thought() -> None:
    talk = AcpConversation(approval_mode="prompt").prompted()
    talk.asks_permission(0, "t", title="bash", kind="execute", rawInput={"command": "ls"})
    talk.thinks("Meanwhile ")
    talk.request(DenyAction("0", "not here"))
    assert talk.thinks("I think") == [
        facts.ToolDone("t", None, "not here", name="bash"),
        facts.StepBegin(),
        facts.ThinkingDelta("I think"),
    ]
