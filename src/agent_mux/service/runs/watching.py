"""A run as somebody sees it who shows it: its events, and how it is, in an order in which both fit together.

How it is comes before the events that made it so: whoever sees an event knows what has come of it.
"""

from collections.abc import AsyncGenerator
from contextlib import aclosing

from agent_mux.service.runs.live import LiveRun
from agent_mux.service.runs.reading import Batch
from agent_mux.service.views import RunView

Seen = tuple[RunView | None, Batch]
"""How the run is, where that changed, and the events behind it."""


async def seen_of(live: LiveRun, start: int) -> AsyncGenerator[Seen, None]:
    """As it happens, until the run is over."""
    reader = live.handle.events(start)
    shown: object = None
    while True:
        news = live.news
        batch = await reader.batch() if reader.has_more else (0, ())
        if batch is None:
            return
        view = live.view(whole=False)
        is_other = shown != (shown := view.revision)
        if is_other or batch[1]:
            yield view if is_other else None, batch
        else:
            await news.wait()


async def seen_of_stored(view: RunView, batches: AsyncGenerator[Batch, None]) -> AsyncGenerator[Seen, None]:
    """Of a run that is over."""
    yield view, (0, ())
    async with aclosing(batches):
        async for batch in batches:
            yield None, batch
