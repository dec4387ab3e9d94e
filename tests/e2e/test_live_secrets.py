"""Secrets that a model streams in pieces reach no event and no result, and files that agents write keep them."""

import pytest
from tests.e2e.harness import FinishedRun, LiveAgent
from tests.e2e.ways import ALL_AGENTS, CORE, TWO_WAY

from agent_mux import encode_event
from agent_mux_testing.live import Say, Shell, Think, Write

KEY = "sk-ant-api03-Zq7Xv2Lk9Rt4Wp8Ns3Hd6Jf1Gb5Cm0YeUaOiTxQ"
"""An invented key of a known format. The model streams a text in three pieces: the ends of the first two are in it."""
LOCAL_TOKEN = "the quiet harbour 4711 keeps its lights"  # noqa: S105  # invented
"""A value without a known format, which only the environment of the run identifies."""
VARIABLE = "HARBOUR_TOKEN"
pytestmark = pytest.mark.anyio


def assert_hidden(done: FinishedRun, *secrets: str) -> None:
    """Assert that no event and no text of the result contains a secret."""
    texts = [encode_event(event).decode() for event in done.events]
    texts += [done.result.text, *done.result.messages, str(done.result)]
    for secret in secrets:
        assert [text for text in texts if secret in text] == []


@CORE
@ALL_AGENTS
async def test_streamed_key_is_hidden(live: LiveAgent) -> None:
    live.script(live.answer(Say(f"key {KEY} !")))
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert_hidden(done, KEY, KEY[12:])
    assert done.result.text.startswith("key ")
    assert done.result.text.endswith(" !")
    assert "".join(event.delta for event in done.all("text_delta")) == done.one("message_stop").text


@ALL_AGENTS
async def test_streamed_value_of_the_environment_is_hidden(live: LiveAgent) -> None:
    live.script(live.answer(Say(f"It is {LOCAL_TOKEN}, sir.")))
    done = await live.run(env={VARIABLE: LOCAL_TOKEN}, **TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert_hidden(done, LOCAL_TOKEN)
    assert done.result.text.startswith("It is ")
    assert done.result.text.endswith(", sir.")


@ALL_AGENTS
async def test_key_in_thinking_is_hidden(live: LiveAgent) -> None:
    live.script(live.answer(Think(f"key {KEY} !"), Say("Done.")))
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert_hidden(done, KEY, KEY[12:])
    assert done.one("thinking_stop").thinking.endswith(" !")


@ALL_AGENTS
async def test_key_in_a_written_file_is_hidden_and_written(live: LiveAgent) -> None:
    live.script(live.answer(Write("settings.ini", f"key = {KEY}\n")), live.answer(Say("Written.")))
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert live.file("settings.ini").read_text() == f"key = {KEY}\n"
    assert_hidden(done, KEY, KEY[12:])


@ALL_AGENTS
async def test_key_in_a_command_is_hidden_and_used(live: LiveAgent) -> None:
    live.script(live.answer(Shell(f"printf %s {KEY} > used.txt; cat used.txt")), live.answer(Say("Used.")))
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert live.file("used.txt").read_text() == KEY
    assert_hidden(done, KEY, KEY[12:])
