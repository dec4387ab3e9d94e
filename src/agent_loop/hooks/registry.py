"""Who wants to be called when: events and wrappers in one registry.

Two scopes: what is registered on the agent holds for its lifetime, what is given to `run(hooks=...)` for that run. Both
are `Hooks`; `Chain` calls them in order: agent, run, then the framework's own gates. Source: zidane, "Gate precedence".
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from inspect import isawaitable
from typing import Any, Protocol

from agent_loop.errors import ConfigurationError
from agent_loop.hooks.contexts import HOOKS, HookContext
from agent_loop.messages import ToolCall
from agent_loop.providers import ModelRequest, ModelResponse
from agent_loop.tools.tool import ToolResult

Handler = Callable[[Any], Awaitable[None] | None]
"""Called with the hook's context; what it returns counts for nothing."""
ModelCall = Callable[[ModelRequest], Awaitable[ModelResponse]]
ModelCallWrapper = Callable[[ModelRequest, ModelCall], Awaitable[ModelResponse]]
"""Around each model call; calls the second argument to go on inwards. Source: hooks seed, section 4.2."""
ToolRun = Callable[[ToolCall], Awaitable[ToolResult]]
ToolCallWrapper = Callable[[ToolCall, ToolRun], Awaitable[ToolResult]]
"""Around each execution of a tool."""
OnHookFailure = Callable[[str, Exception], Awaitable[None]]
Unregister = Callable[[], None]


class Middleware(Protocol):
    """Hooks and wrappers that belong together. Source: hooks seed, section 4.1."""

    @property
    def name(self) -> str:
        """Unique, for messages and for the state it keeps."""
        ...

    def install(self, hooks: "Hooks") -> None:
        """Register what it consists of."""
        ...


class Hooks:
    """A registry of handlers and wrappers. Raises `ConfigurationError` for names that no hook has."""

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
        for each in middleware:
            each.install(self)

    def on(self, name: str, handler: Handler) -> Unregister:
        """Call `handler` whenever `name` fires; the return value takes it out again."""
        if name not in HOOKS:
            raise ConfigurationError(f"there is no hook {name!r}; the hooks are {', '.join(HOOKS)}")
        return _add(self.handlers.setdefault(name, []), handler)

    def wrap_model_call(self, wrapper: ModelCallWrapper) -> Unregister:
        """Go around each model call; the first that is registered is the outermost."""
        return _add(self.model_call_wrappers, wrapper)

    def wrap_tool_call(self, wrapper: ToolCallWrapper) -> Unregister:
        """Go around each execution of a tool; the first that is registered is the outermost."""
        return _add(self.tool_call_wrappers, wrapper)


def _add(items: list[Any], item: Any) -> Unregister:
    items.append(item)

    def unregister() -> None:
        if item in items:
            items.remove(item)

    return unregister


class Chain:
    """Several registries as one, for the length of a run. Handlers that raise are told of, and passed over."""

    def __init__(self, scopes: Sequence[Hooks], on_failure: OnHookFailure) -> None:
        self._scopes = tuple(scopes)
        self._on_failure = on_failure

    def has_handlers(self, name: str) -> bool:
        """Somebody wants to be called: contexts for nobody need not be made."""
        return any(scope.handlers.get(name) for scope in self._scopes)

    async def fire(self, name: str, context: HookContext) -> bool:
        """Call everybody, in order. False: somebody raised, which was told, and the others were called all the same."""
        all_succeeded = True
        for scope in self._scopes:
            for handler in tuple(scope.handlers.get(name, ())):
                try:
                    outcome = handler(context)
                    if isawaitable(outcome):
                        await outcome
                except Exception as error:  # noqa: BLE001  # isolated: a hook of somebody never ends a run
                    all_succeeded = False
                    await self._on_failure(name, error)
        return all_succeeded

    def around_model_call(self, call: ModelCall) -> ModelCall:
        """The call with all wrappers around it. Source: hooks seed, section 5.1."""
        for wrapper in reversed([w for scope in self._scopes for w in scope.model_call_wrappers]):
            call = _wrap(wrapper, call)
        return call

    def around_tool_call(self, run: ToolRun) -> ToolRun:
        """The execution with all wrappers around it."""
        for wrapper in reversed([w for scope in self._scopes for w in scope.tool_call_wrappers]):
            run = _wrap(wrapper, run)
        return run


def _wrap(wrapper: Any, inner: Any) -> Any:
    async def wrapped_call(subject: Any) -> Any:
        return await wrapper(subject, inner)

    return wrapped_call
