"""The reference of the embedded agent's hooks, from their contexts and from one run that really happens."""

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
from agent_loop.providers.scripted_provider import Scriptable, ScriptedProvider
from agent_loop.tools.function import function_tool
from agent_mux.meanings import meanings_of

INTRODUCTION = """# Hooks of the embedded agent

<!-- Written by docs/generate.py from agent_loop.hooks. Do not edit. -->

Each of these {count} hooks calls its handlers with one context. Register them for the lifetime of the agent
(`Agent(hooks={{"tool:gate": handler}})`, `agent.hooks.on(name, handler)`) or for one run (`agent.run(hooks=...)`); a
value is one handler or a list of them, plain functions or coroutine functions. What a handler returns counts for
nothing. It acts by setting the fields that are marked as mutable; the last writer wins, and setting any other field
raises. A name that is not on this page is refused when the agent is built. What a handler raises is told in a
`hook_failed` event, and the run goes on without it; a `tool:gate` that raises blocks its call.

Handlers are called in this order: those of the agent, its middleware, those of the run, then the own gates of the
framework (allowed tools, budgets of calls, repeated calls), which leave alone what was refused or answered already.

Every context has `session_id`, `loop_id` and `turn` (from 0, within the run).

## Wrappers

Besides hooks, there is what goes *around* a call, as rings of an onion, the first that is registered outermost:

- `Hooks.wrap_model_call(wrapper)`: `async def wrapper(request, next)` gives a `ModelResponse`; `await next(request)`
  goes inwards.
- `Hooks.wrap_tool_call(wrapper)`: `async def wrapper(call, next)` gives a `ToolResult`.

A `Middleware` is what registers hooks and wrappers together: `name`, and `install(hooks)`.

## The order of a run

This is what fires in a run with one tool call, a run that has a system prompt of its own:

```
{order}
```

"""
MEANINGS = {
    "tools": "the tools of this run; add yours",
    "state": "what the session keeps: todos, files, plain data of middleware",
    "messages": "the messages it is about",
    "message": "the message",
    "loop_index": "loops of this session before this one",
    "stop": "true ends the run here, as aborted",
    "status": "`completed`, `rejected`, `aborted`, `failed` or `limited`",
    "usage": "tokens and money",
    "total": "of the run so far",
    "turns": "model calls of this run",
    "output": "the structured answer, where there is one",
    "resumed": "the session has a history",
    "system": "the system prompt",
    "reason": "why",
    "error": "what was raised",
    "text": "what was said",
    "prompt": "a message that makes the model go on",
    "tool_results": "what the tools of the turn gave",
    "value": "the answer that fits the schema",
    "bytes": "of tool output in this turn",
    "budget": "bytes",
    "tool": "the tool",
    "count": "calls in this run, this one included",
    "max_calls": "calls that the budget allows",
    "mode": "`block` or `steer`",
    "call_id": "id of the tool call",
    "name": "canonical name of the tool",
    "label": "name for people",
    "run_tool_counts": "calls of this run by tool, from before this one; read only",
    "arguments": "of the call",
    "block": "true refuses the call: the model reads `Blocked: reason`",
    "result": "what the model gets",
    "suppress_error": "true leaves `tool:error` out",
    "problem": "one sentence",
    "coercions": "what was made to fit",
    "skip": "true leaves the tool out, with a skipped result",
    "suppress": "true keeps it from the stream",
    "duration_ms": "milliseconds",
    "assistant": "the messages that want the calls",
    "results": "one for each call",
}
"""Where the source says nothing more special below the field."""
ALIASES = {str(Message): "Message", str(LoopStatus): "LoopStatus"}
"""Unions by their names."""


def agent_hooks_page() -> str:
    """The reference of all hooks."""
    order = "\n".join(fired())
    sections = "\n".join(_section(name, context) for name, context in HOOKS.items())
    return INTRODUCTION.format(count=len(HOOKS), order=order) + "## The hooks\n\n" + sections


def fired() -> list[str]:
    """What fires in a run, in its order; a hook that fires several times in a row stands once."""
    seen: list[str] = []

    def note(name: str, _: HookContext) -> None:
        seen.append(name)

    def look() -> str:
        """Look."""
        return "seen"

    script: list[Scriptable] = [_step(thinking="Hm.", text="I look.", tool=call("look")), "I have seen it."]
    agent = Agent(
        ScriptedProvider(script),
        tools=[function_tool(look)],
        hooks={name: partial(note, name) for name in HOOKS},
    )
    anyio.run(partial(agent.run, "Look.", system_prompt="Be brief."))
    return [name for name, _ in groupby(seen)]


def _step(*, thinking: str, text: str, tool: Step) -> Step:
    """A step that thinks, speaks and calls."""
    return Step(thinking=thinking, text=text, tool_calls=tool.tool_calls)


def _section(name: str, context: type[HookContext]) -> str:
    rows = "\n".join(_rows(context))
    table = f"| field | type | mutable | meaning |\n|---|---|---|---|\n{rows}\n" if rows else "Nothing more.\n"
    return f"### `{name}`\n\n{_when(context)} (`{context.__name__}`)\n\n{table}"


def _when(context: type[HookContext]) -> str:
    text = " ".join((context.__doc__ or "").split()).split(" Source:")[0]
    said = re.sub(r"^(?:`[\w:-]+`(?:, )?)+: ", "", text)
    return said[:1].upper() + said[1:]


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
