"""What is on its way to the agent's standard input: written in order, however slowly the agent reads."""

from collections import deque
from collections.abc import Callable

import anyio

from agent_mux.process.child import Child
from agent_mux.sdk.codec import CloseStdin, WriteStdin


class Outbox:
    """A queue without a limit: an agent that does not read must not stop the one who sends."""

    def __init__(
        self, on_written: Callable[[bytes], None], on_lost: Callable[[bytes], None], unmask: Callable[[bytes], bytes]
    ) -> None:
        """`on_lost`: the agent did not take this; it reads no more.

        `unmask` makes what the codec wrote into what the agent gets: with its secrets.
        """
        self._on_written = on_written
        self._on_lost = on_lost
        self._unmask = unmask
        self.is_closed = False
        """Nothing more can be sent."""
        self._waiting: deque[WriteStdin | CloseStdin] = deque()
        self._news = anyio.Event()

    def put(self, effect: WriteStdin | CloseStdin) -> None:
        """Send this after all that waits."""
        self.is_closed = self.is_closed or isinstance(effect, CloseStdin)
        self._waiting.append(effect)
        self._news.set()

    async def deliver(self, child: Child) -> None:
        """Write what comes, until cancelled."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            while self._waiting:
                match self._waiting.popleft():
                    case WriteStdin(data):
                        await self._write(child, data)
                    case CloseStdin():
                        child.close_stdin()

    async def _write(self, child: Child, data: bytes) -> None:
        if not child.stdin_open:
            self._on_lost(data)
            return
        try:
            await child.write(self._unmask(data))
        except OSError:
            # The agent reads no more. What that means shows in how it ends; the journal has what it did read.
            self.is_closed = True
            child.close_stdin()
            self._on_lost(data)
        else:
            self._on_written(data)
