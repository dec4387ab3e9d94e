"""Building conversations step by step, and filtering them by role."""

from agent_loop.messages import Messages, ToolCall, assistant, system, tool_message, user
from agent_loop.messages.message import ExtensionMessage

CALL = ToolCall("call_1", "calculate", {"expr": "2+2"})
CHAIN = (
    Messages()
    .system("You are helpful.")
    .user("What is 2+2?")
    .assistant("", CALL)
    .tool("call_1", "calculate", "4")
    .assistant("2+2 = 4")
)


def test_standalone_constructors_return_single_messages() -> None:
    made = [system("s"), user("u"), assistant("a", CALL), tool_message("call_1", "calculate", "4", is_error=True)]

    assert [message.text for message in made] == ["s", "u", "a", "4"]
    assert assistant("a", CALL).tool_calls == (CALL,)
    assert assistant("a", CALL).stop_reason == "tool_use"
    assert assistant("").content == ()
    assert tool_message("c", "n", "t", is_error=True).is_error


def test_chain_builder_builds_the_conversation_of_the_seed() -> None:
    assert list(CHAIN) == [
        system("You are helpful."),
        user("What is 2+2?"),
        assistant("", CALL),
        tool_message("call_1", "calculate", "4"),
        assistant("2+2 = 4"),
    ]
    assert CHAIN.validate() is CHAIN


def test_builders_leave_the_chain_they_began_with() -> None:
    base = Messages().system("s")
    one, other = base.user("one"), base.user("other")

    assert len(base) == 1
    assert (one.last_text, other.last_text) == ("one", "other")


def test_chain_is_a_list_that_grows_in_place() -> None:
    chain = Messages()
    chain.extend(CHAIN)
    chain.append(user("thanks"))

    assert len(chain) == 6
    assert chain[:5] == CHAIN


def test_filters_find_the_messages_of_one_role() -> None:
    chain = CHAIN.with_(ExtensionMessage(kind="note"))

    assert [message.content for message in chain.system_messages] == ["You are helpful."]
    assert [message.text for message in chain.user_messages] == ["What is 2+2?"]
    assert [message.text for message in chain.assistant_messages] == ["", "2+2 = 4"]
    assert [message.tool_call_id for message in chain.tool_messages] == ["call_1"]
    assert chain.by_role("user") == chain.user_messages
    assert chain.by_role("extension") == [ExtensionMessage(kind="note")]


def test_accessors_of_the_last_message() -> None:
    assert CHAIN.last == assistant("2+2 = 4")
    assert CHAIN.last_text == "2+2 = 4"
    assert Messages().last is None
    assert not Messages().last_text
