"""The reference page of the embedded agent's hooks, generated from their contexts and a real run."""

import re
from collections.abc import Iterator
from functools import partial
from itertools import groupby
from typing import get_type_hints

import anyio
from docs.pages.field_strings import field_strings_of

from agent_loop.agent import Agent
from agent_loop.events import LoopStatus
from agent_loop.hooks import HOOKS, HookContext
from agent_loop.messages import Message
from agent_loop.providers.script import Step, call
from agent_loop.providers.scripted_provider import Scriptable, ScriptedProvider
from agent_loop.tools.function import function_tool

INTRODUCTION = """# Hooks of the embedded agent

<!-- Written by docs/generate.py from agent_loop.hooks. Do not edit. -->

Each of these {count} hooks calls its handlers with one context. Register them for the lifetime of the agent
(`Agent(hooks={{"tool:gate": handler}})`, `agent.hooks.on(name, handler)`) or for one run (`agent.run(hooks=...)`); a
value is one handler or a list of them, plain functions or coroutine functions. The return value of a
handler is ignored. It acts by setting the fields that are marked as mutable; the last handler takes precedence, and
setting any other field raises. Unknown hook names are rejected when the agent is created. An exception of a handler is
reported in a `hook_failed` event, and the run continues without it; a `tool:gate` that raises blocks its call.

Handlers are called in this order: the gate of active skills, those of the agent, its middleware, those of the run, then
the built-in gates (allowed tools, budgets of calls, repeated calls), which ignore calls that were already refused or
answered.

Every context has `session_id`, `loop_id`, `turn` (from 0, within the run) and `depth` (0 for the main agent, 1 for its
sub-agents).

## Wrappers

Wrappers surround model and tool calls; the one registered first is the outermost:

- `Hooks.wrap_model_call(wrapper)`: `async def wrapper(request, next)` returns a `ModelResponse`; `await next(request)`
  calls the next wrapper or the model.
- `Hooks.wrap_tool_call(wrapper)`: `async def wrapper(call, next)` returns a `ToolResult`.

A `Middleware` is a named group of hooks and wrappers: `name`, and `install(hooks)`.

## The order of a run

These hooks fire in a run with one tool call and its own system prompt:

```
{order}
```

"""
MEANINGS = {
    "tools": "the tools of this run; may be extended",
    "state": "state of the session: todos, files, plain data of middleware",
    "messages": "the messages",
    "message": "the message",
    "loop_index": "number of earlier loops in this session",
    "stop": "true ends the run here, as aborted",
    "status": "`completed`, `rejected`, `aborted`, `failed` or `limited`",
    "usage": "tokens and cost",
    "total": "total of the run up to this call",
    "turns": "model calls of this run",
    "output": "the structured answer, if any",
    "resumed": "whether the session has a history",
    "system": "the system prompt",
    "reason": "the reason",
    "error": "the exception",
    "text": "the text",
    "prompt": "a message that makes the model continue",
    "tool_results": "results of the turn's tools",
    "value": "the answer that matches the schema",
    "bytes": "bytes of tool output in this turn",
    "budget": "maximum bytes",
    "tool": "the tool",
    "count": "calls in this run, this one included",
    "max_calls": "calls that the budget allows",
    "mode": "`block` or `steer`",
    "call_id": "id of the tool call",
    "name": "canonical name of the tool",
    "label": "display name",
    "run_tool_counts": "calls of this run by tool before this one; read only",
    "arguments": "arguments of the call",
    "block": "true refuses the call: the model reads `Blocked: reason`",
    "result": "the result for the model",
    "suppress_error": "true skips `tool:error`",
    "problem": "one sentence",
    "coercions": "conversions of arguments",
    "skip": "true skips the tool, with a skipped result",
    "suppress": "true omits it from the event stream",
    "duration_ms": "milliseconds",
    "assistant": "the messages that contain the calls",
    "results": "one result for each call",
    "server": "name of the MCP server",
    "transport": "`stdio`, `sse` or `streamable-http`",
    "url": "URL of the server",
    "headers": "headers for the repeated request and all later ones",
    "skills": "the skills, sorted by name",
    "catalog": "text for the system prompt",
    "skill": "the skill",
    "ok": "whether it is connected",
    "tool_count": "number of its tools",
}
"""Meanings of fields without a docstring of their own."""
ALIASES = {str(Message): "Message", str(LoopStatus): "LoopStatus"}
"""Names of union types."""


def agent_hooks_page() -> str:
    """Return the reference page of all hooks."""
    order = "\n".join(fired())
    sections = "\n".join(_section(name, context) for name, context in HOOKS.items())
    return INTRODUCTION.format(count=len(HOOKS), order=order) + "## The hooks\n\n" + sections


def fired() -> list[str]:
    """Return the hooks that fire in a run, in order; consecutive repetitions are listed once."""
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
    """Return a step with thinking, text and a tool call."""
    return Step(thinking=thinking, text=text, tool_calls=tool.tool_calls)


def _section(name: str, context: type[HookContext]) -> str:
    rows = "\n".join(_rows(context))
    table = f"| field | type | mutable | meaning |\n|---|---|---|---|\n{rows}\n" if rows else "Nothing more.\n"
    return f"### `{name}`\n\n{_when(name, context)} (`{context.__name__}`)\n\n{table}"


def _when(name: str, context: type[HookContext]) -> str:
    text = " ".join((context.__doc__ or "").split())
    text = re.sub(r"^(?:`[\w:-]+`(?:, )?)+: ", "", text)
    text = text[:1].upper() + text[1:]
    return f"`{name.removeprefix('child:')}` of a sub-agent. {text}" if name.startswith("child:") else text


def _rows(context: type[HookContext]) -> Iterator[str]:
    hints = get_type_hints(context)
    meanings = MEANINGS | field_strings_of(context)
    for field in context.__struct_fields__:
        if field not in HookContext.__struct_fields__:
            mutable = "yes" if field in context.MUTABLE else ""
            meaning = " ".join(meanings[field].split()).rstrip(".")
            yield f"| `{field}` | {_type(hints[field])} | {mutable} | {meaning} |"


def _type(hint: object) -> str:
    text = hint.__name__ if isinstance(hint, type) and not getattr(hint, "__args__", ()) else str(hint)
    for whole, name in ALIASES.items():
        text = text.replace(whole, name)
    plain = re.sub(r"\b(?:[a-z_]+\.)+(?=[A-Z])", "", text)
    return "`" + plain.replace("|", r"\|") + "`"
