"""The replay provider returns the recorded answers if the requests match."""

from pathlib import Path

import anyio
import msgspec
import pytest
from tests.unit.embedded.providers.harness import PATIENCE, Listener, ask, called, converse, request, result

from agent_loop.errors import ConfigurationError, ModelAbortedError, ProviderError
from agent_loop.messages import AssistantMessage, ExtensionMessage, Message, SystemMessage, Text, Thinking, user
from agent_loop.providers import TextChunk, ThinkingChunk
from agent_loop.sessions.replay_provider import ReplayProvider
from agent_loop.sessions.session import LoopRecord, Session
from agent_loop.usage import Usage

FINAL = AssistantMessage(
    content=(Thinking("All is well.", "c2ln"), Text("Done.")), model="m-1", usage=Usage(output_tokens=3)
)
HISTORY: list[Message] = [SystemMessage(content="Be good."), user("go"), called("shell"), result("it is 10:00"), FINAL]


def _session(tmp_path: Path, history: list[Message]) -> Path:
    path = tmp_path / "session.json"
    loops = [LoopRecord(loop_id="l1", messages=history)]
    path.write_bytes(msgspec.json.encode(Session(session_id="s", agent_id="a", loops=loops)))
    return path


def test_a_stored_session_is_played_again(tmp_path: Path) -> None:
    provider = ReplayProvider.from_name(str(_session(tmp_path, HISTORY)))
    answers = anyio.run(converse, provider, "go", ["it is 10:00"])
    assert answers == [HISTORY[2], FINAL]
    assert provider.model == "m-1"


def test_usage_of_a_replayed_answer_is_the_recorded_one() -> None:
    response = anyio.run(ask, ReplayProvider([user("go"), FINAL]), "go")
    assert response.usage == Usage(output_tokens=3)


def test_saved_messages_are_played_again(tmp_path: Path) -> None:
    path = tmp_path / "messages.json"
    path.write_bytes(msgspec.json.encode(HISTORY))
    assert anyio.run(converse, ReplayProvider.from_name(str(path)), "go", [""])[-1] == FINAL


def test_a_lenient_replay_lets_tool_results_differ_and_a_strict_one_does_not(tmp_path: Path) -> None:
    path = _session(tmp_path, HISTORY)
    assert anyio.run(converse, ReplayProvider.from_name(str(path)), "go", ["it is 11:00"])[-1] == FINAL
    with pytest.raises(ProviderError, match=r"request 2 does not fit the recording: .*10:00.*11:00"):
        anyio.run(converse, ReplayProvider.from_name(f"strict:{path}"), "go", ["it is 11:00"])


@pytest.mark.parametrize("asked", [[user("stop")], [user("go"), user("and more")], [result("x")], []])
def test_another_request_than_the_recorded_one_is_refused(asked: list[Message]) -> None:
    with pytest.raises(ProviderError, match="request 1 does not fit the recording"):
        anyio.run(ask, ReplayProvider(HISTORY), *asked)


def test_messages_of_the_loop_and_the_application_are_not_compared() -> None:
    asked = [user("go"), user("3 turns left", origin="limit"), ExtensionMessage(kind="note")]
    assert anyio.run(ask, ReplayProvider(HISTORY), *asked).messages == (HISTORY[2],)


def test_a_recording_that_is_over_and_a_summary_have_no_answer() -> None:
    with pytest.raises(ProviderError, match="no answer to request 1"):
        anyio.run(ask, ReplayProvider([]), "go")
    provider = ReplayProvider(HISTORY)
    with pytest.raises(ProviderError, match=r"\(summary\)"):
        anyio.run(lambda: ask(provider, "go", purpose="summary"))
    assert anyio.run(ask, provider, "go").tool_calls


def test_recorded_failures_fail_again() -> None:
    failed = AssistantMessage(content=(), stop_reason="error", error="overloaded")
    stopped = AssistantMessage(content=(Text("I beg"),), stop_reason="aborted")
    with pytest.raises(ProviderError, match="overloaded"):
        anyio.run(ask, ReplayProvider([user("go"), failed]), "go")
    with pytest.raises(ModelAbortedError):
        anyio.run(ask, ReplayProvider([user("go"), stopped]), "go")


def test_several_messages_of_one_answer_stay_together() -> None:
    provider = ReplayProvider([user("go"), FINAL, FINAL])
    response = anyio.run(ask, provider, "go")
    assert response.messages == (FINAL, FINAL)
    assert response.usage == Usage(output_tokens=6)


@pytest.mark.anyio
async def test_a_replay_is_streamed_and_cancellable_at_each_piece() -> None:
    listener = Listener()
    with anyio.fail_after(PATIENCE), anyio.CancelScope() as scope:
        await ReplayProvider([user("go"), FINAL]).respond(request("go"), listener)
        assert listener.chunks == [ThinkingChunk("All is well."), TextChunk("Done.")]
        scope.cancel()
        await ReplayProvider([user("go"), FINAL]).respond(request("go"), listener)
    assert scope.cancelled_caught
    assert len(listener.chunks) == 2


@pytest.mark.parametrize("content", [b"", b"{}", b"[1]", b"\xff", b"[" * 100_000])
def test_invalid_recording_file_is_reported(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "session.json"
    path.write_bytes(content)
    with pytest.raises(ConfigurationError, match="neither a session nor a list of messages"):
        ReplayProvider.from_name(str(path))


def test_missing_recording_is_reported(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="cannot read the recording"):
        ReplayProvider.from_name(str(tmp_path / "none.json"))
