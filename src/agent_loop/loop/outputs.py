"""Model calls outside of turns: the final summary, the structured output, summaries of old messages.

None of them changes the history.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from agent_loop.context.summaries import SUMMARY_REQUEST
from agent_loop.errors import InvalidArgumentsError, ProviderError
from agent_loop.loop.model_calls import call_model, settings_of
from agent_loop.loop.responses import cut_call, unwrap_value, validate_output, wrap_schema
from agent_loop.loop.run import LoopRun
from agent_loop.messages import Message, user
from agent_loop.output_types import OutputSchema, schema_of_output, typed_output
from agent_loop.providers import ModelRequest, ModelResponse, ToolDefinition

OUTPUT_TOOL = "__output__"
OUTPUT_ATTEMPTS = 2
FINAL_REQUEST = (
    "You have used all available turns. Do not call any tool. Summarize what you did, what you found, and "
    "what is left to do."
)
OUTPUT_REQUEST = f"Now give your answer by calling {OUTPUT_TOOL}, once."


def no_summary_text(turns: int) -> str:
    """Return the final text of a run whose model produced no summary."""
    return f"The agent stopped at its limit of {turns} turns. No summary of its work is available."


async def request_final_summary(run: LoopRun) -> str:
    """Return the model's final summary at the iteration limit, or a fixed sentence if it fails."""
    request = ModelRequest(
        system=run.system,
        messages=[*await _fitted_messages(run), user(FINAL_REQUEST)],
        tool_choice="none",
        settings=settings_of(run),
        purpose="final",
    )
    try:
        answer = await call_model(run, request, is_streamed=False)
    except ProviderError:
        return no_summary_text(run.tracker.run_turns)
    return answer.text.strip() or no_summary_text(run.tracker.run_turns)


async def request_summary(run: LoopRun, messages: Sequence[Message]) -> str:
    """Return the model's summary of these messages. Raises `ProviderError`."""
    request = ModelRequest(
        system=run.system,
        messages=[*run.toolset.to_wire(messages), user(SUMMARY_REQUEST)],
        tool_choice="none",
        settings=settings_of(run),
        purpose="summary",
    )
    text = (await call_model(run, request, is_streamed=False)).text.strip()
    if not text:
        raise ProviderError("the model returned an empty summary", provider=run.provider.id)
    return text


async def request_structured_output(run: LoopRun, output: OutputSchema, text: str) -> tuple[Any, Any]:
    """Return the answer that matches the output's schema, as plain data and as an instance of its type.

    The text counts if it is JSON that fits; otherwise the model is asked to call an output tool. Raises `ProviderError`
    if no attempt produces a fitting value.
    """
    schema = schema_of_output(output)

    def validated(value: Any) -> tuple[Any, Any]:
        plain = validate_output(schema, value)
        return plain, typed_output(output, plain)

    try:
        return validated(msgspec.json.decode(text))
    except (msgspec.DecodeError, InvalidArgumentsError):
        pass  # not JSON, or not matching: request it below
    problem = ""
    for _ in range(OUTPUT_ATTEMPTS):
        answer = await call_model(run, await _output_request(run, schema, problem), is_streamed=False)
        try:
            return validated(_output_argument(answer, schema))
        except InvalidArgumentsError as error:
            problem = f" The last one did not match: {error}"
    raise ProviderError(
        f"the model returned no answer that matches the output schema:{problem}", provider=run.provider.id
    )


def _output_argument(answer: ModelResponse, schema: Mapping[str, Any]) -> Any:
    if cut_call(answer) is not None or (answer.stop_reason == "length" and not answer.tool_calls):
        raise InvalidArgumentsError("the answer was cut at the output limit; make it shorter")
    if not answer.tool_calls:
        raise InvalidArgumentsError(f"you did not call {OUTPUT_TOOL}")
    return unwrap_value(schema, answer.tool_calls[0].arguments)


async def _output_request(run: LoopRun, schema: Mapping[str, Any], problem: str) -> ModelRequest:
    return ModelRequest(
        system=run.system,
        messages=[*await _fitted_messages(run), user(OUTPUT_REQUEST + problem)],
        tools=(ToolDefinition(OUTPUT_TOOL, "Gives the final answer.", wrap_schema(schema)),),
        tool_choice=OUTPUT_TOOL,
        settings=settings_of(run),
        purpose="output",
    )


async def _fitted_messages(run: LoopRun) -> Sequence[Message]:
    return run.toolset.to_wire((await run.context.fit(run.sendable())).messages)
