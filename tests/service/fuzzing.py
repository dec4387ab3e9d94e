"""Schemathesis against a server: the cases that it makes of the OpenAPI document, and what it holds of the answers.

Only the built-in `replay` agent can be started, and every run is over within seconds: a stream of events always ends.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import schemathesis
from schemathesis.config import SchemathesisConfig
from schemathesis.engine import events, from_schema
from tests.service.serving import Serving, serving

from agent_mux.sdk.registry import AdapterRegistry
from agent_mux_adapters import claude

STORE = Path(__file__).parents[1] / "stores" / "claude" / "2.1.330" / "home"
CHECKS = (
    "not_a_server_error",
    "status_code_conformance",
    "content_type_conformance",
    "response_headers_conformance",
    "response_schema_conformance",
    "negative_data_rejection",
    "positive_data_acceptance",
    "missing_required_header",
    "unsupported_method",
    "allow_header_conformance",
    "use_after_free",
)
HARMLESS = frozenset(
    {"tags", "projectId", "debug", "eventBufferSize", "maxModelCalls", "retryPolicy", "stream", "model"}
)
NOWHERE = "http://127.0.0.1:9/"
"""Nobody listens there."""
REJECTED = ("413", "414", "415", "422", "429", "431")
LONGEST_RUN = 5000  # milliseconds
REQUEST_TIMEOUT = 20  # seconds
LONGEST_ANSWER = 1000  # characters that are reported of a wrong answer
NOT_ALL_IN_THE_SCHEMA = (
    "create_run",  # fields that exclude each other, directories that are not there, what the agent can do
    "set_profile",  # there is no project
    "list_runs",  # the cursor is opaque
    "read_events",  # names with commas between them
    "list_audit",  # the cursor is opaque
    "read_patch",  # paths without `..`, here and below
    "read_run_file",
    "list_sessions",  # agents that store no sessions, here and below
    "list_skipped_files",
    "search_sessions",
    "get_session",
    "read_session_events",
    "export_session",
    "report_cost",
    "list_checkpoints",
    "rewind_session",  # checkpoints that there are
    "rename_session",
    "delete_session",
    "create_webhook",  # secrets are base64 of so many bytes, agents are those there are, hosts may be private
    "change_webhook",
    "rotate_secret",
    "set_model_run",  # what the agent can do, here and below
    "set_approval_mode_run",
    "list_deliveries",  # the cursor is opaque
    "create_comparison",  # agents, strategies and paths that there are, commands that need no shell
    "list_comparisons",  # the cursor is opaque
    "read_comparison",  # positions are those of the stream
)
"""Whether they accept what the schema allows depends on more than a schema can express."""


def registry() -> AdapterRegistry:
    """`replay`, and the agent of its recording, which cannot be started and left sessions."""
    adapters = AdapterRegistry()
    for name in adapters.names():
        if name != "replay":
            adapters.unregister(name)
    nowhere = {"executables": ("no-such-program",), "executable_variable": "AMUX_NO_SUCH_PROGRAM"}
    adapters.register(replace(claude.ADAPTER, **nowhere))
    return adapters


@contextmanager
def fuzzed_server(directory: Path) -> Iterator[Serving]:
    """A server whose runs end by themselves."""
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "config.json").write_text(f'{{"timeout": {LONGEST_RUN}}}')
    work = directory.parent / "work"  # comparisons copy it, and refuse to copy the files of the service
    work.mkdir(exist_ok=True)
    with serving(directory, registry(), allow_private_webhooks=True, roots=[work]) as server:
        yield server


@dataclass
class Report:
    """What came of it."""

    failures: list[str] = field(default_factory=list)
    statuses: dict[str, Counter[int]] = field(default_factory=lambda: defaultdict(Counter))
    """By operation (`GET /v1/runs`): how often each status was answered."""


def explore(url: str, *, phases: tuple[str, ...], examples: int, only: str | None = None) -> Report:
    """Let Schemathesis loose. `examples`: for each operation and kind of case; `only`: on this path."""
    config = SchemathesisConfig.from_dict(_config(phases, examples))
    report = Report()
    schema = schemathesis.openapi.from_url(f"{url}/openapi.json", config=config)
    schema.hook(map_case)
    for event in from_schema(schema if only is None else schema.include(path=only)).execute():
        match event:
            case events.ScenarioFinished(recorder=recorder):
                _note(report, recorder)
            case events.NonFatalError(value=error, label=label):
                report.failures.append(f"{label}: {error!r}")
            case events.FatalError(exception=error):
                raise error
    return report


def map_case(context: schemathesis.HookContext, case: schemathesis.Case) -> schemathesis.Case:
    """Every other run that could be is one that is: the demo, with what else was asked that it can do.

    Webhooks lead nowhere: no test tells anybody anything.
    """
    is_possible = case.meta is not None and case.meta.generation.mode.is_positive and isinstance(case.body, dict)
    if is_possible and "/v1/webhooks" in case.operation.label and isinstance(case.body.get("url"), str):
        case.body = {**case.body, "url": NOWHERE}
    if case.operation.label != "POST /v1/runs" or not is_possible:
        return case
    if len(str(case.body)) % 2:
        kept = {key: value for key, value in case.body.items() if key in HARMLESS}
        case.body = {**kept, "agent": "replay", "prompt": "demo", "env": {"AMUX_REPLAY_SPEED": "0"}}
    elif case.body.get("interactive"):  # it would stay open
        case.body = {**case.body, "timeout": LONGEST_RUN}
    return case


def _note(report: Report, recorder: Any) -> None:
    for case_id, interaction in recorder.interactions.items():
        case = recorder.cases[case_id].value
        if interaction.response is not None:
            report.statuses[f"{case.method} {case.path}"][interaction.response.status_code] += 1
        for check in recorder.checks.get(case_id, ()):
            if check.failure_info is not None:
                failure, sample = check.failure_info.failure, check.failure_info.code_sample
                answer = "" if interaction.response is None else interaction.response.text[:LONGEST_ANSWER]
                report.failures.append(f"{case.method} {case.path}: {failure}\n  {sample}\n  {answer}")


def _config(phases: tuple[str, ...], examples: int) -> dict[str, Any]:
    every = ("examples", "coverage", "fuzzing", "stateful")
    return {
        "request-timeout": REQUEST_TIMEOUT,
        "continue-on-failure": True,
        # NUL characters are refused everywhere, which no schema expresses; test_bodies.py tests them.
        "generation": {"max-examples": examples, "deterministic": True, "allow-x00": False},
        "checks": {
            "enabled": False,
            **{name: {"enabled": True} for name in CHECKS},
            "negative_data_rejection": {"enabled": True, "expected-statuses": ["400", "404", "405", "409", *REJECTED]},
        },
        "phases": {name: {"enabled": name in phases} for name in every},
        "operations": [
            {"include-operation-id": name, "checks": {"positive_data_acceptance": {"enabled": False}}}
            for name in NOT_ALL_IN_THE_SCHEMA
        ],
    }
