"""Text of the model reaches the caller, and prompts, options and attachments reach the model."""

import base64
import json
from pathlib import Path

import pytest
from tests.e2e.harness import LiveAgent
from tests.e2e.request_fields import effort, instructions
from tests.e2e.ways import ALL_AGENTS, BOTH_WAYS, CORE, ON_BOTH_LOOPS, TWO_WAY, WAYS

from agent_mux import Attachment
from agent_mux_testing.live import Say, Shell, StructuredAnswer, Think

DOT = (  # a PNG of one pixel
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg=="
)
pytestmark = pytest.mark.anyio


@CORE
@ALL_AGENTS
@ON_BOTH_LOOPS
async def test_text(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello from the script.")))
    done = await live.run("say hello")
    assert done.result.exit_reason == "completed"
    assert done.result.text == "Hello from the script."
    assert done.one("message_stop").text == "Hello from the script."
    assert "".join(event.delta for event in done.all("text_delta")) == "Hello from the script."
    assert done.types("session_start", "turn_start", "message_start", "message_stop", "turn_end", "session_end") == [
        "session_start", "turn_start", "message_start", "message_stop", "turn_end", "session_end",
    ]  # fmt: skip
    assert done.result.session_id == done.one("session_start").session_id
    assert live.model.received("say hello")
    assert live.model.unused_steps == ()
    live.assert_usage(done, calls=1)
    live.assert_version(done)


async def test_text_two_way(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hello in pieces, over the richer protocol.")))
    done = await live.run("say hello", **TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert done.one("message_stop").text == "Hello in pieces, over the richer protocol."
    assert len(done.all("text_delta")) == 3  # one for each chunk of the model's stream
    assert done.all("text_delta")[-1].accumulated == done.result.text
    assert done.all("stream_fallback") == []
    live.assert_usage(done, calls=1)
    live.assert_version(done)


@ALL_AGENTS
async def test_thinking(live: LiveAgent) -> None:
    live.script(live.answer(Think("Let me think about it carefully."), Say("Answer: 42")))
    done = await live.run(**TWO_WAY)
    assert done.result.exit_reason == "completed"
    assert done.one("thinking_stop").thinking == "Let me think about it carefully."
    assert done.types("thinking_start", "thinking_stop", "message_start", "message_stop") == [
        "thinking_start", "thinking_stop", "message_start", "message_stop",
    ]  # fmt: skip
    assert done.one("step_start").step_type == "thinking"
    assert done.result.text == "Answer: 42"


async def test_steps_are_model_calls(live: LiveAgent) -> None:
    live.script(
        live.answer(Say("First."), Shell("true")), live.answer(Shell("true")), live.answer(Say("Last.")),
    )  # fmt: skip
    done = await live.run(**TWO_WAY)
    assert done.result.messages == ["First.", "Last."]
    assert [(step.step_index, step.step_type) for step in done.all("step_start")] == [
        (0, "generation"), (1, "tool_use"), (2, "generation"),
    ]  # fmt: skip
    live.assert_usage(done, calls=3)


async def test_unstreamed(live: LiveAgent) -> None:
    live.script(live.answer(Say("All at once."), Shell("true")), live.answer(Say("And again.")))
    done = await live.run(stream=False, **TWO_WAY)
    assert [event.delta for event in done.all("text_delta")] == ["All at once.", "And again."]
    assert done.all("tool_input_delta") == []
    assert done.result.text == "All at once.\n\nAnd again."


async def test_unicode_text(live: LiveAgent) -> None:
    odd = 'naïve — 日本 \u2028 line separator \u0085 next line 😀 \\ " end'
    live.script(live.answer(Say(odd)))
    done = await live.run(odd, **TWO_WAY)
    assert done.result.text == odd
    assert live.model.received(odd)


async def test_system_prompt(live: LiveAgent) -> None:
    live.script(live.answer(Say("Arr.")))
    done = await live.run(system_prompt="Always talk like a pirate.", **TWO_WAY)
    assert done.result.text == "Arr."
    assert live.model.received("Always talk like a pirate.")
    assert len(str(live.model.requests[0].body)) > 5000  # it is added to the agent's own prompt


@ALL_AGENTS
async def test_skills_and_documents_of_one_run(live: LiveAgent, tmp_path: Path) -> None:
    """A document and a skill reach the model in one run, and not in the next."""
    skill, document = tmp_path / "singing", tmp_path / "GUIDE.md"
    skill.mkdir()
    header = "---\nname: singing\ndescription: Knows how the quokka sings\n---\n"
    (skill / "SKILL.md").write_text(f"{header}Sing.\n", "utf-8")
    document.write_text("Never wake the wombat.\n", "utf-8")
    live.script(live.answer(Say("Sung.")))
    await live.run(skills=[str(skill)], agents_doc=document)
    body = json.dumps([request.body for request in live.model.requests])
    for text in ("Never wake the wombat.", "singing: Knows how the quokka sings", str(skill / "SKILL.md")):
        assert text in body
    live.script(live.answer(Say("Quiet.")))
    await live.run()
    assert "quokka" not in json.dumps([request.body for request in live.model.requests])


async def test_system_prompt_replaced(live: LiveAgent) -> None:
    live.script(live.answer(Say("Arr.")), live.answer(Say("Good day.")))
    await live.run(system_prompt="Only talk like a pirate.", system_prompt_mode="replace")
    await live.run()
    replaced, own = (instructions(request.body) for request in live.model.requests)
    assert "Only talk like a pirate." in replaced
    assert len(replaced) < len(own) / 2


async def test_model_name(live: LiveAgent) -> None:
    name = "scripted-1"  # not a known model: it is passed through
    live.script(live.answer(Say("Hi.")))
    done = await live.run(model=name)
    assert {request.body["model"] for request in live.model.requests} == {name}
    assert done.result.model == name


async def test_output_schema(live: LiveAgent) -> None:
    schema = {
        "type": "object",
        "properties": {"answer": {"type": "integer"}},
        "required": ["answer"],
        "additionalProperties": False,
    }
    live.script(live.answer(StructuredAnswer({"answer": 42})), live.answer(Say("Done.")))
    done = await live.run(output_schema=schema)
    assert done.result.exit_reason == "completed"
    assert done.result.structured_output == {"answer": 42}
    assert "'answer': {'type': 'integer'}" in str(live.model.requests[0].body)


@BOTH_WAYS
async def test_image(live: LiveAgent, way: str) -> None:
    picture = live.file("dot.png")
    picture.write_bytes(base64.b64decode(DOT))
    live.script(live.answer(Say("A dot.")))
    done = await live.run("what is this?", attachments=[Attachment(file_path=str(picture))], **WAYS[way])
    assert done.result.text == "A dot."
    assert DOT[:40] in str(live.model.requests[0].body)  # agents may append to the file, not change it


async def test_environment(live: LiveAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET_OF_THE_CALLER", "canary")
    live.script(live.answer(Shell("env | grep -v KEY > seen")), live.answer(Say("Done.")))
    await live.run()
    seen = live.file("seen").read_text()
    assert f"HOME={live.home}" in seen
    assert "canary" not in seen


async def test_thinking_effort(live: LiveAgent) -> None:
    live.script(live.answer(Say("Hi.")))
    done = await live.run(thinking_effort="high")
    assert done.result.exit_reason == "completed"
    assert effort(live.model.requests[0].body) == "high"
