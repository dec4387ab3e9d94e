"""The rules that providers enforce on a history, implemented independently of the checker under test."""

from agent_loop.messages import AssistantMessage, ExtensionMessage, SystemMessage, ToolMessage, UserMessage


def assert_valid_history(messages) -> None:
    shown = [each for each in messages if not isinstance(each, SystemMessage | ExtensionMessage)]
    assert isinstance(shown[0], UserMessage)
    called = [one.id for each in shown if isinstance(each, AssistantMessage) for one in each.tool_calls]
    answered = [each.tool_call_id for each in shown if isinstance(each, ToolMessage)]
    assert sorted(called) == sorted(answered)
    place = {
        one.id: at for at, each in enumerate(shown) if isinstance(each, AssistantMessage) for one in each.tool_calls
    }
    assert all(place[each.tool_call_id] < at for at, each in enumerate(shown) if isinstance(each, ToolMessage))
