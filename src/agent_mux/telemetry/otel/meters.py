"""The metrics of runs."""

from collections.abc import Mapping

from opentelemetry.metrics import MeterProvider, get_meter

from agent_mux._util.version import __version__
from agent_mux.telemetry.otel import conventions as names

Attributes = Mapping[str, str | int | float]


class Meters:
    """Instruments, made once for each meter provider that is used."""

    def __init__(self, provider: MeterProvider | None) -> None:
        meter = get_meter("agent_mux", __version__, provider)
        self._tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Number of input and output tokens used.",
            explicit_bucket_boundaries_advisory=names.TOKEN_BUCKETS,
        )
        self._operations = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "GenAI operation duration.",
            explicit_bucket_boundaries_advisory=names.OPERATION_BUCKETS,
        )
        self._agents = meter.create_histogram(
            "gen_ai.invoke_agent.duration",
            "s",
            "From the start of an agent to its last word.",
            explicit_bucket_boundaries_advisory=names.AGENT_BUCKETS,
        )
        self._tools = meter.create_histogram(
            "gen_ai.execute_tool.duration",
            "s",
            "The duration of a single tool execution.",
            explicit_bucket_boundaries_advisory=names.OPERATION_BUCKETS,
        )
        self._runs = meter.create_counter("agent_mux.runs", "{run}", "Runs that ended, by exit reason.")
        self._cost = meter.create_counter("agent_mux.cost", "USD", "What runs cost, where that is known.")

    def tokens(self, kind: str, number: int, attributes: Attributes) -> None:
        """Tokens of one kind, of one model call."""
        self._tokens.record(number, {**attributes, names.TOKEN_TYPE: kind})

    def duration(self, operation: str, seconds: float, attributes: Attributes) -> None:
        """How long a model call, an agent or a tool took."""
        by_operation = {names.INVOKE_AGENT: self._agents, names.EXECUTE_TOOL: self._tools}
        by_operation.get(operation, self._operations).record(seconds, attributes)

    def run(self, cost_usd: float | None, attributes: Attributes) -> None:
        """A run ended."""
        self._runs.add(1, attributes)
        if cost_usd is not None:
            self._cost.add(cost_usd, attributes)
