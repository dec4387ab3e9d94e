"""Todo list: the tool that writes it, and a reminder when the model stops before all todos are done.

The list is in the tool calls of the history, not in the system prompt: a prompt that changes with each todo would
invalidate the provider's cache with each call.
"""

from collections.abc import Sequence

from agent_loop.hooks.contexts import BeforeAgent, IncompleteWork
from agent_loop.hooks.registry import Hooks
from agent_loop.state import Todo
from agent_loop.tools.tool import Tool

REMINDER_INSTRUCTIONS = (
    "Continue with them. If one is done or no longer needed, mark it with write_todos; if one cannot be done, "
    "explain why in your answer."
)
MAX_LISTED_TODOS = 20
"""Number of todos that a reminder lists."""
MAX_TITLE_CHARACTERS = 200
"""Characters of a title in a reminder."""


class TodoListMiddleware:
    """Registers `write_todos` and reminds the model of open todos, at most `max_reminders` times in a run."""

    name = "todos"

    def __init__(self, *, max_reminders: int = 1, tool: Tool | None = None) -> None:
        self.max_reminders = max_reminders
        self._tool = tool

    def install(self, hooks: Hooks) -> None:
        """Register the handlers that add the tool and the reminder."""
        hooks.on("agent:before", self._register_tool)
        hooks.on("work:incomplete", self._remind)

    def _register_tool(self, context: BeforeAgent) -> None:
        tool = self._tool or _default_tool()
        if tool.name not in {each.name for each in context.tools}:
            context.tools.append(tool)

    def _remind(self, context: IncompleteWork) -> None:
        open_todos = [todo for todo in context.state.todos if todo.status != "done"]
        if open_todos and context.reminders < self.max_reminders:
            prompts = (context.prompt, reminder(open_todos))
            context.prompt = "\n\n".join(prompt for prompt in prompts if prompt)


def reminder(open_todos: Sequence[Todo]) -> str:
    """Return the reminder of these open todos for the model."""
    lines = [f"- {todo.id} ({todo.status}): {_one_line(todo.title)}" for todo in open_todos[:MAX_LISTED_TODOS]]
    more = [f"- and {len(open_todos) - MAX_LISTED_TODOS} more"] if len(open_todos) > MAX_LISTED_TODOS else []
    return "\n".join((
        "These todos are still open:",
        *lines,
        *more,
        REMINDER_INSTRUCTIONS,
    ))  # fmt: skip


def _one_line(title: str) -> str:
    line = " ".join(title.split())
    return line if len(line) <= MAX_TITLE_CHARACTERS else f"{line[:MAX_TITLE_CHARACTERS]}…"


def _default_tool() -> Tool:
    from agent_loop.tools.builtin import WriteTodosTool  # noqa: PLC0415  # imported only if needed

    return WriteTodosTool()
