"""The reference of the embedded agent's hooks, from their contexts and from one recorded run."""

import dataclasses
import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import get_type_hints

import anyio

from agent_loop.agent import Agent
from agent_loop.events import LoopStatus
from agent_loop.hooks import HOOKS, HookContext
from agent_loop.messages import Message
from agent_loop.providers.script import Step, call
from agent_loop.providers.scripted import Scriptable, ScriptedProvider
from agent_loop.tools.function import function_tool
from agent_mux.meanings import meanings_of

INTRODUCTION = """# Hooks of the embedded agent

<!-- Written by docs/generate.py from agent_loop.hooks. Do not edit. -->

Each of these {count} hooks calls its handlers with one context. Register handlers for the lifetime of the agent
(`Agent(hooks={{"tool:gate": handler}})`, `agent.hooks.on(name, handler)`) or for one run (`agent.run(hooks=...)`). A
value is one handler or a list of handlers, plain functions or coroutine functions. The return value of a handler is
ignored. A handler acts by setting the fields that are marked as mutable; the last value is used, and setting any other
field raises. An unknown hook name is refused when the agent is created. An exception in a handler is reported by a
`hook_failed` event, and the run continues; a `tool:gate` that raises blocks its call.

Handlers are called in this order: those of the agent, its middleware, those of the run, then the gates of the framework
(allowed tools, call budgets, repeated calls), which skip calls that were already refused or answered.

Every context has `session_id`, `loop_id` and `turn` (from 0, within the run).

## Wrappers

In addition to hooks, wrappers run *around* a call. They are nested; the first registered wrapper is the outermost:

- `Hooks.wrap_model_call(wrapper)`: `async def wrapper(request, next)` returns a `ModelResponse`; `await next(request)`
  calls the next wrapper or the model.
- `Hooks.wrap_tool_call(wrapper)`: `async def wrapper(call, next)` returns a `ToolResult`.

A `Middleware` registers hooks and wrappers together: it has `name` and `install(hooks)`.

## Order of hooks in a run

These hooks are called in a run with one tool call and a system prompt:

```
{order}
```

"""
MEANINGS = {
    "tools": "the tools of this run; add yours here",
    "state": "data that the session stores: todos, files, plain data of middleware",
    "messages": "the messages in question",
    "message": "the message",
    "loop_index": "number of earlier loops of this session",
    "stop": "true ends the run here, as aborted",
    "status": "`completed`, `rejected`, `aborted`, `failed` or `limited`",
    "usage": "tokens and money",
    "total": "usage of the run so far",
    "turns": "number of model calls of this run",
    "output": "the structured answer, if there is one",
    "resumed": "whether the session has a history",
    "system": "the system prompt",
    "reason": "the reason",
    "error": "the exception",
    "text": "the text of the answer",
    "prompt": "a message that makes the model continue",
    "tool_results": "the tool results of the turn",
    "value": "the answer that fits the schema",
    "bytes": "size of the tool output in this turn",
    "budget": "the limit in bytes",
    "tool": "the tool",
    "count": "number of calls in this run, this one included",
    "max_calls": "number of calls that the budget allows",
    "mode": "`block` or `steer`",
    "call_id": "id of the tool call",
    "name": "canonical name of the tool",
    "label": "display name",
    "run_tool_counts": "number of earlier calls in this run, by tool; read-only",
    "arguments": "arguments of the call",
    "block": "true refuses the call: the model receives `Blocked: reason`",
    "result": "what the model receives",
    "suppress_error": "true skips `tool:error`",
    "problem": "the problem, as one sentence",
    "coercions": "the arguments that were converted to fit the schema",
    "skip": "true skips the tool, with a skipped result",
    "suppress": "true removes it from the stream",
    "duration_ms": "duration in milliseconds",
    "assistant": "the messages that contain the calls",
    "results": "one result per call",
}
"""Meanings of fields without a docstring in the source."""
ALIASES = {str(Message): "Message", str(LoopStatus): "LoopStatus"}
"""Names of union types, by their representation."""


def agent_hooks_page() -> str:
    """Return the page."""
    order = "\n".join(called_hooks())
    sections = "\n".join(_section(name, context) for name, context in HOOKS.items())
    return INTRODUCTION.format(count=len(HOOKS), order=order) + "## The hooks\n\n" + sections


def called_hooks() -> list[str]:
    """Return the hooks that one run calls, in order. A hook that is called several times in a row is listed once."""
    seen: list[str] = []

    def record(name: str, _: HookContext) -> None:
        seen.append(name)

    def look() -> str:
        """Look."""
        return "seen"

    script: list[Scriptable] = [_step(thinking="Hm.", text="I look.", tool=call("look")), "I have seen it."]
    agent = Agent(
        ScriptedProvider(script),
        tools=[function_tool(look)],
        hooks={name: partial(record, name) for name in HOOKS},
    )
    anyio.run(partial(agent.run, "Look.", system_prompt="Be brief."))
    return [name for name, _ in groupby(seen)]


def _step(*, thinking: str, text: str, tool: Step) -> Step:
    """Return a step with thinking, text and a tool call."""
    return Step(thinking=thinking, text=text, tool_calls=tool.tool_calls)


def _section(name: str, context: type[HookContext]) -> str:
    rows = "\n".join(_rows(context))
    table = f"| field | type | mutable | meaning |\n|---|---|---|---|\n{rows}\n" if rows else "No further fields.\n"
    return f"### `{name}`\n\n{_when(context)} (`{context.__name__}`)\n\n{table}"


def _when(context: type[HookContext]) -> str:
    text = " ".join((context.__doc__ or "").split()).split(" Source:")[0]
    sentence = re.sub(r"^(?:`[\w:-]+`(?:, )?)+: ", "", text)
    return sentence[:1].upper() + sentence[1:]


def _rows(context: type[HookContext]) -> Iterator[str]:
    hints = get_type_hints(context)
    meanings = MEANINGS | meanings_of(context)
    common = {field.name for field in dataclasses.fields(HookContext)}
    for field in dataclasses.fields(context):
        if field.name not in common:
            mutable = "yes" if field.name in context.MUTABLE else ""
            meaning = " ".join(meanings[field.name].split()).rstrip(".")
            yield f"| `{field.name}` | {_type(hints[field.name])} | {mutable} | {meaning} |"


def _type(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) and not getattr(hint, "__args__", ()) else str(hint)
    for whole, name in ALIASES.items():
        text = text.replace(whole, name)
    plain = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    return "`" + plain.replace("|", r"\|") + "`"
