"""Tokens of sessions without `session.usage_record` events (up to 1.0.92): sums by model when a process ends.

The sums are those of the process (1.0.54), or of the whole session (1.0.80); the number of calls shows which.
"""

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from agent_mux.sdk.sessions import ModelCalled
from agent_mux_adapters._dialects.tolerant import mapping, whole
from agent_mux_adapters.copilot.usage import CopilotTokens, tokens_of


class StoredMetrics:
    """Turns the sums at the end of each process into what that process used."""

    def __init__(self) -> None:
        self.calls = 0
        """Messages of the model since the last sums."""
        self.has_records = False
        """Whether the calls since then are stored one by one."""
        self._before: dict[str, tuple[int, CopilotTokens]] = {}
        """Number of calls and tokens at the last sums, by model."""

    def at_shutdown(self, metrics: Mapping[str, Any], event_id: str) -> Iterator[ModelCalled]:
        """Return the tokens of a process that ended, by model."""
        sums = {
            model: (whole(mapping(used.get("requests")).get("count")), tokens_of(mapping(used.get("usage"))))
            for model, used in metrics.items()
            if isinstance(used, dict)
        }
        includes_earlier = sum(count for count, _ in sums.values()) > self.calls and self._is_continued(sums)
        for model, (_, tokens) in sums.items():
            _, before = self._before.get(model, (0, CopilotTokens()))
            used = tokens - before if includes_earlier else tokens
            if not self.has_records and used != CopilotTokens():
                usage = msgspec.structs.replace(used.usage, of_one_call=False)
                yield ModelCalled(f"{event_id}/{model}", model, usage)
        self._before = sums
        self.calls, self.has_records = 0, False

    def _is_continued(self, sums: Mapping[str, tuple[int, CopilotTokens]]) -> bool:
        """Return whether no number is smaller than at the last sums."""
        return bool(self._before) and all(
            model in sums
            and sums[model][0] >= count
            and all(left >= right for left, right in zip(_counts(sums[model][1]), _counts(tokens), strict=True))
            for model, (count, tokens) in self._before.items()
        )


def _counts(tokens: CopilotTokens) -> tuple[int, ...]:
    return msgspec.structs.astuple(tokens)
