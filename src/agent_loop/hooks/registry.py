"""Registry of hook handlers and of wrappers around model and tool calls.

Handlers of the agent stay registered for its lifetime, those of `run(hooks=...)` for one run. Both are `Hooks`; `Chain`
calls them in the order agent, run, built-in gates.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Protocol

from agent_loop.errors import ConfigurationError
from agent_loop.hooks.contexts import HOOKS, HookContext
from agent_loop.messages import ToolCall
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.tools.tool import ToolResult

GATES = frozenset({"tool:gate", "mcp:tool:gate", "child:tool:gate"})
"""Hooks that decide about a call: what returns a value there meant to decide with it."""
Handler = Callable[[Any], Awaitable[None] | None]
"""Receives the hook's context. Its return value is ignored, but a gate that returns one counts as failed."""
ModelCall = Callable[[ModelRequest], Awaitable[ModelResponse]]
ModelCallWrapper = Callable[[ModelRequest, ModelCall], Awaitable[ModelResponse]]
"""Wraps each model call; awaits its second argument to proceed to the next wrapper or the model."""
ToolRun = Callable[[ToolCall], Awaitable[ToolResult]]
ToolCallWrapper = Callable[[ToolCall, ToolRun], Awaitable[ToolResult]]
"""Wraps each execution of a tool."""
OnHookFailure = Callable[[str, Exception], Awaitable[None]]
Unregister = Callable[[], None]


class Middleware(Protocol):
    """A named group of hooks and wrappers."""

    @property
    def name(self) -> str:
        """Unique name, for messages and for the middleware's state."""
        ...

    def install(self, hooks: "Hooks") -> None:
        """Register the handlers and wrappers of this middleware."""
        ...


class Hooks:
    """A registry of handlers and wrappers. Raises `ConfigurationError` for unknown hook names."""

    def __init__(
        self,
        handlers: "Mapping[str, Handler | Sequence[Handler]] | None" = None,
        middleware: "Sequence[Middleware]" = (),
    ) -> None:
        self.handlers: dict[str, list[Handler]] = {}
        self.model_call_wrappers: list[ModelCallWrapper] = []
        self.tool_call_wrappers: list[ToolCallWrapper] = []
        for name, registered in (handlers or {}).items():
            for handler in registered if isinstance(registered, Sequence) else (registered,):
                self.on(name, handler)
        for one in middleware:
            if not callable(getattr(one, "install", None)):
                raise ConfigurationError(f"{one!r} is not middleware; pass an object with a method install(hooks)")
            one.install(self)

    def on(self, name: str, handler: Handler) -> Unregister:
        """Register a handler for the hook `name`; the returned function unregisters it."""
        if name not in HOOKS:
            raise ConfigurationError(f"unknown hook {name!r}; known hooks: {', '.join(HOOKS)}")
        if not callable(handler):
            raise ConfigurationError(f"the handler of {name!r} must be a function, not {handler!r}")
        return _add(self.handlers.setdefault(name, []), handler)

    def wrap_model_call(self, wrapper: ModelCallWrapper) -> Unregister:
        """Register a wrapper around each model call; the first one is the outermost."""
        return _add(self.model_call_wrappers, wrapper)

    def wrap_tool_call(self, wrapper: ToolCallWrapper) -> Unregister:
        """Register a wrapper around each execution of a tool; the first one is the outermost."""
        return _add(self.tool_call_wrappers, wrapper)


def _add(items: list[Any], item: Any) -> Unregister:
    items.append(item)

    def unregister() -> None:
        if item in items:
            items.remove(item)

    return unregister


def _check_return(name: str, returned: Any) -> None:
    if returned is not None and name in GATES:
        kind = type(returned).__name__
        raise ConfigurationError(
            f"it returned {kind}, which decides nothing; set `block` or `result` of the context and return None"
        )


class Chain:
    """Several registries as one, for one run. Handlers that raise are reported and skipped."""

    def __init__(self, scopes: Sequence[Hooks], on_failure: OnHookFailure) -> None:
        self._scopes = tuple(scopes)
        self._on_failure = on_failure

    def has_handlers(self, name: str) -> bool:
        """Return whether any handler is registered; without one, no context needs to be built."""
        return any(scope.handlers.get(name) for scope in self._scopes)

    async def fire(self, name: str, context: HookContext) -> bool:
        """Call all handlers in order. Return False if one raised; it is reported and the others are still called."""
        all_succeeded = True
        for scope in self._scopes:
            for handler in tuple(scope.handlers.get(name, ())):
                try:
                    outcome: Any = handler(context)
                    _check_return(name, await outcome if isawaitable(outcome) else outcome)
                except Exception as error:  # noqa: BLE001  # isolated: a failing hook never ends a run
                    all_succeeded = False
                    await self._on_failure(name, error)
        return all_succeeded

    def around_model_call(self, call: ModelCall) -> ModelCall:
        """Return the call with all wrappers around it."""
        for wrapper in reversed([w for scope in self._scopes for w in scope.model_call_wrappers]):
            call = _wrap(wrapper, call)
        return call

    def around_tool_call(self, run: ToolRun) -> ToolRun:
        """Return the execution with all wrappers around it."""
        for wrapper in reversed([w for scope in self._scopes for w in scope.tool_call_wrappers]):
            run = _wrap(wrapper, run)
        return run


def _wrap(wrapper: Any, inner: Any) -> Any:
    async def wrapped_call(subject: Any) -> Any:
        return await wrapper(subject, inner)

    return wrapped_call
