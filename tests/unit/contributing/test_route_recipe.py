"""Every route of the service is known in all the places that the recipe "Add a route" names."""

import re

from docs.pages.http_api import document
from tests.unit.contributing.recipes import Place, check_places, paths_on_page, text_of

from agent_mux import RemoteMux, RemoteRun
from agent_mux.client.remote.comparison import RemoteComparison
from agent_mux.client.remote.namespaces import RemoteNamespaces

OPERATIONS = {
    operation["operationId"]: (method.upper(), path)
    for path, methods in document()["paths"].items()
    for method, operation in methods.items()
}
"""Method and path of each operation, by the name of its function."""
CLIENT = {
    "create_run": "run",
    "list_runs": "runs.list",
    "get_run": "runs.get",
    "delete_run": "runs.delete",
    "read_events": "RemoteRun.events",
    "read_text": "runs.read_text",
    "input_run": "RemoteRun.send",
    "steer_run": "RemoteRun.steer",
    "queue_run": "RemoteRun.queue",
    "approve_run": "RemoteRun.approve",
    "deny_run": "RemoteRun.deny",
    "respond_run": "RemoteRun.answer_with",
    "interrupt_run": "RemoteRun.interrupt",
    "set_model_run": "RemoteRun.set_model",
    "set_approval_mode_run": "RemoteRun.set_approval_mode",
    "pause_run": "RemoteRun.pause",
    "resume_run": "RemoteRun.resume",
    "resize_run": "RemoteRun.resize",
    "close_run": "RemoteRun.close",
    "abort_run": "RemoteRun.abort",
    "kill_run": "RemoteRun.kill",
    "list_interactions": "RemoteRun.interaction",
    "create_comparison": "compare",
    "list_comparisons": "comparisons.list",
    "get_comparison": "comparisons.get",
    "read_comparison": "RemoteComparison.messages",
    "export_comparison": "comparisons.export",
    "stop_comparison": "RemoteComparison.stop",
    "resume_comparison": "resume_comparison",
    "apply_comparison": "comparisons.apply",
    "delete_comparison": "comparisons.remove",
    "get_trial": "comparisons.trial",
    "read_trial_patch": "comparisons.patch",
    "steer_trial": "RemoteComparison.steer",
    "approve_trial": "RemoteComparison.approve",
    "deny_trial": "RemoteComparison.deny",
    "respond_trial": "RemoteComparison.respond",
    "abort_trial": "RemoteComparison.abort",
    "list_agents": "adapters.names",
    "get_agent": "adapters.get",
    "get_capabilities": "adapters.get",
    "list_detected": "detector.detect_all",
    "detect_agents": "detector.forget",
    "list_models": "models.list",
    "list_models_of_agent": "models.list",
    "get_model": "models.get",
    "list_sessions": "sessions.list",
    "list_skipped_files": "sessions.list",
    "search_sessions": "sessions.search",
    "get_session": "sessions.get",
    "read_session_events": "sessions.events",
    "export_session": "sessions.export",
    "list_checkpoints": "sessions.checkpoints",
    "rewind_session": "sessions.rewind",
    "rename_session": "sessions.rename",
    "delete_session": "sessions.delete",
    "report_cost": "sessions.total_cost",
    "list_audit": "audit.list",
    "list_files": "runs.files",
    "read_run_file": "runs.read_file",
    "read_patch": "runs.patch",
    "list_quotas": "quota.list",
    "list_profiles": "profiles.list",
    "get_profile": "profiles.get",
    "set_profile": "profiles.set",
    "delete_profile": "profiles.delete",
}
"""The method of `RemoteMux`, of its namespaces or of a handle that covers an operation."""
HANDLES = {"RemoteRun": RemoteRun, "RemoteComparison": RemoteComparison}
NOT_IN_CLIENT = {
    "health": "for supervisors",
    "ready": "for supervisors",
    "read_metrics": "for Prometheus",
    "approve_all_run": "the client answers one request at a time",
    "deny_all_run": "the client answers one request at a time",
    "list_webhooks": "for operators",
    "create_webhook": "for operators",
    "get_webhook": "for operators",
    "change_webhook": "for operators",
    "delete_webhook": "for operators",
    "rotate_secret": "for operators",
    "test_webhook": "for operators",
    "list_deliveries": "for operators",
}
"""Operations that the Python client does not offer, with the reason."""


def in_client(operation: str) -> bool:
    if operation in NOT_IN_CLIENT:
        return True
    owner, _, method = CLIENT.get(operation, "").rpartition(".")
    if owner in HANDLES:
        return hasattr(HANDLES[owner], method)
    return hasattr(RemoteNamespaces, owner) if owner else bool(method) and hasattr(RemoteMux, method)


def last_segment(operation: str) -> str:
    """Return the last fixed segment of the path: `approve-all`."""
    return [part for part in OPERATIONS[operation][1].split("/") if part and not part.startswith("{")][-1]


def in_page(operation: str) -> bool:
    method, path = OPERATIONS[operation]
    return f"{method} {path}" in text_of("docs/reference/http-api.md")


def in_document(operation: str) -> bool:
    return f'"operationId": "{operation}"' in text_of("docs/reference/openapi.json")


def words_of(operation: str) -> str:
    """Return a pattern for the words by which code names an operation: its function, or the end of its path."""
    return (
        rf"\b(?:{operation}|{re.sub('_(run|trial|comparison)$', '', operation)}|{re.escape(last_segment(operation))})\b"
    )


PLACES = (
    Place(
        "src/agent_mux/service/routes/",
        "the function, whose name is the operation id",
        lambda operation: re.search(words_of(operation), text_of("src/agent_mux/service/routes")) is not None,
    ),
    Place(
        "tests/service/",
        "a test that requests it, here or in tests/process with a service as the other side",
        lambda operation: any(
            re.search(words_of(operation), text_of(f"tests/{name}")) for name in ("service", "process")
        ),
    ),
    Place(
        "src/agent_mux/client/remote/",
        "the method of the client, in CLIENT or NOT_IN_CLIENT in test_route_recipe.py",
        in_client,
    ),
    Place("docs/reference/http-api.md", "its section in the generated page (`make docs`)", in_page),
    Place("docs/reference/openapi.json", "its operation in the generated document (`make docs`)", in_document),
)


def test_every_route_is_known_in_every_place() -> None:
    check_places("route", OPERATIONS, PLACES)


def test_exceptions_are_routes() -> None:
    assert set(OPERATIONS) == set(CLIENT) ^ set(NOT_IN_CLIENT)


def test_recipe_names_the_places() -> None:
    assert paths_on_page("route") == [place.path for place in PLACES]
