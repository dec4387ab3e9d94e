"""Empty answers: the model is asked to continue when its answer after tool results has no text and no calls."""

from agent_loop.hooks.contexts import IncompleteWork, ToolResultsAfter
from agent_loop.hooks.registry import Hooks

CONTINUE = "Your last answer was empty. Continue with the task; if it is done, state the result."


class EmptyAnswerMiddleware:
    """Asks the model to continue after an empty answer, once until it calls tools again.

    Models sometimes end their turn without a word after tool results, although the task is not done.
    """

    name = "empty_answers"

    def __init__(self) -> None:
        self._loop_with_results = ""
        """The loop whose last answer with tool calls was followed by no such request yet."""

    def install(self, hooks: Hooks) -> None:
        """Register the handlers that notice tool results and empty answers."""
        hooks.on("tool-results:after", self._notice_results)
        hooks.on("work:incomplete", self._ask_to_continue)

    def _notice_results(self, context: ToolResultsAfter) -> None:
        self._loop_with_results = context.loop_id

    def _ask_to_continue(self, context: IncompleteWork) -> None:
        if context.text or self._loop_with_results != context.loop_id:
            return
        self._loop_with_results = ""
        context.prompt = context.prompt or CONTINUE
