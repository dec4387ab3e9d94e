"""Journals that end before their runs do: the disk refused a record, and the run continued without a journal."""

import logging
from collections.abc import Iterator
from pathlib import Path

from agent_mux._util.logs import LOGGER
from agent_mux.errors import AgentMuxError
from agent_mux.events import AgentEvent, DebugEvent
from agent_mux.run.derivation import CodecFactory, JournalEvents

RECORDING_ENDS = "the recording ends here, because its disk refused it; later events of this run are not available"


def recorded_batches(run_id: str, path: Path, make_codec: CodecFactory) -> Iterator[tuple[int, list[AgentEvent]]]:
    """Yield the events in such a journal and a warning behind them; none without a journal. Blocking.

    The events that would close the stream are not among them: the run continued, and its result is known.
    """
    position, last = 0, None
    try:
        journal = JournalEvents(path, make_codec)
        if journal.header.stream.run_id != run_id:
            return
        while (batch := journal.next_batch()) is not None:
            position, last = journal.position, batch[-1]
            yield position - len(batch), batch
    except (OSError, AgentMuxError) as error:  # no journal, or a record of which only a part was written
        logging.getLogger(LOGGER).debug("the journal of run %s ends early: %s", run_id, error)
    if last is not None:
        yield position, [DebugEvent(run_id, last.agent, last.timestamp, "warn", RECORDING_ENDS)]
