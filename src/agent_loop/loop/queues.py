"""What people say while the agent works. Source: phi-core, "QueueMode"."""

from collections import deque

from agent_loop.behavior import QueueMode
from agent_loop.messages import UserMessage


class MessageQueue:
    """Messages that wait for the loop to take them. `put` may be called from any thread."""

    def __init__(self) -> None:
        self._waiting: deque[UserMessage] = deque()

    def put(self, message: UserMessage) -> None:
        """Let it wait."""
        self._waiting.append(message)

    def take(self, mode: QueueMode) -> list[UserMessage]:
        """The oldest one, or all of them."""
        if mode == "one_at_a_time":
            return [self._waiting.popleft()] if self._waiting else []
        taken = []
        while self._waiting:
            taken.append(self._waiting.popleft())
        return taken

    def clear(self) -> None:
        """Forget all of them."""
        self._waiting.clear()

    def __bool__(self) -> bool:
        return bool(self._waiting)

    def __len__(self) -> int:
        return len(self._waiting)
