"""What a command says: kept within bounds, and told while it runs."""

import anyio

from agent_loop.tools.builtin.tail import Tail, last_bytes
from agent_loop.tools.effects import OutputStream
from agent_loop.tools.tool import Update

MOST_KEPT = 16 << 20
"""Bytes of each stream that are kept at most, also where nothing is to be truncated."""
EFFECT_BYTES = 32_768
"""Of each stream that the effect has."""
UPDATE_BYTES = 16_384
"""Of one update of one stream; what comes faster is dropped from its head. The result has it all the same."""
UPDATE_EVERY = 0.1
"""Seconds between two updates, at least."""


class Captured:
    """Both streams of one command, as far as they are kept."""

    def __init__(self, max_output_bytes: int) -> None:
        """0: as much as we ever keep."""
        self.limit = max_output_bytes or MOST_KEPT
        self.stdout = Tail(max(self.limit, EFFECT_BYTES))
        self.stderr = Tail(max(self.limit, EFFECT_BYTES))
        self._untold: dict[OutputStream, Tail] = {"stdout": Tail(UPDATE_BYTES), "stderr": Tail(UPDATE_BYTES)}
        self._news = anyio.Event()
        self._finished = anyio.Event()

    def on_stdout(self, text: str) -> None:
        """More of it."""
        self._add(self.stdout, "stdout", text)

    def on_stderr(self, text: str) -> None:
        """More of it."""
        self._add(self.stderr, "stderr", text)

    def _add(self, tail: Tail, stream: OutputStream, text: str) -> None:
        if text:
            tail.add(text)
            self._untold[stream].add(text)
            self._news.set()

    def finish(self) -> None:
        """Nothing more comes."""
        self._finished.set()
        self._news.set()

    async def tell(self, update: Update) -> None:
        """Tell what comes, until all is told. A slow listener misses some, and holds nobody up."""
        while True:
            await self._news.wait()
            self._news = anyio.Event()
            for stream, untold in self._untold.items():
                if untold:
                    await update(untold.taken(), stream)
            if self._finished.is_set() and not any(self._untold.values()):
                return
            with anyio.move_on_after(UPDATE_EVERY):
                await self._finished.wait()
            if self._finished.is_set():
                self._news.set()

    @property
    def stdout_end(self) -> str:
        """For the effect."""
        return last_bytes(self.stdout.text, EFFECT_BYTES)[0]

    @property
    def stderr_end(self) -> str:
        """For the effect."""
        return last_bytes(self.stderr.text, EFFECT_BYTES)[0]
