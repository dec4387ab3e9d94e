"""`amux adapters`, `detect`, `detect-host`, `capabilities` and `auth`: the agents on this machine."""

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer

from agent_mux.cli.command_output import Invocation, print_json, print_rows
from agent_mux.cli.decorators import with_common_flags, with_service_flags
from agent_mux.cli.installation_options import AgentName, homes_for
from agent_mux.cli.options import ConfigDir
from agent_mux.cli.terminal import local_minute

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from agent_mux.agents.auth import AuthState
    from agent_mux.cli.command_output import ServiceEndpoint
    from agent_mux.sdk.adapter import Adapter
    from agent_mux.sdk.installation import SetupStep


adapters = typer.Typer(help="Agents that amux can drive.", no_args_is_help=True)


@adapters.command("list")
@with_common_flags
@with_service_flags
def list_adapters(context: typer.Context) -> int:
    """List all adapters, with protocols and tested versions."""
    import msgspec

    from agent_mux.api.agents import known_agents
    from agent_mux.sdk.registry import AdapterRegistry

    service: ServiceEndpoint | None = context.obj.service
    known = AdapterRegistry() if service is None else cast("AdapterRegistry", service.client().adapters)
    rows = [msgspec.to_builtins(view) for view in known_agents(known)]
    print_rows(rows, ("agent", "displayName", "protocols", "testedVersion", "problem"), context.obj)
    return 0


@adapters.command("detect")
@with_common_flags
@with_service_flags
def detect(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Agent (default: all).", show_default=False),
    ] = None,
    all_agents: Annotated[
        bool, typer.Option("--all", help="Every agent, as without AGENT.", show_default=False)
    ] = False,
) -> int:
    """Find installed agents and print their versions."""
    import anyio
    import msgspec

    from agent_mux.agents.detection import Detector
    from agent_mux.api.agents import detected_view
    from agent_mux.cli.errors import usage_error
    from agent_mux.cli.terminal import progress
    from agent_mux.sdk.registry import AdapterRegistry

    if all_agents and agent is not None:
        raise usage_error("--all cannot be combined with AGENT")
    service: ServiceEndpoint | None = context.obj.service
    detector = Detector(AdapterRegistry()) if service is None else service.client().detector
    with progress("reading versions"):
        found = anyio.run(detector.detect_all) if agent is None else [anyio.run(detector.detect, agent)]
    rows = [msgspec.to_builtins(detected_view(one)) for one in found]
    print_rows(rows, ("agent", "installed", "version", "versionState", "path", "problem"), context.obj)
    return 0


@adapters.command("show")
@with_common_flags
@with_service_flags
def adapter_info(context: typer.Context, agent: AgentName) -> int:
    """Show everything about one agent: installed version, credentials, protocols, models and files."""
    import anyio
    import msgspec

    from agent_mux.agents.auth import Auth
    from agent_mux.agents.detection import Detector
    from agent_mux.api.agents import agent_info, agent_view, with_detected
    from agent_mux.cli.terminal import progress
    from agent_mux.sdk.registry import AdapterRegistry

    service: ServiceEndpoint | None = context.obj.service
    if service is not None:
        client = service.client()
        remote = client.adapters.get(agent)
        found = anyio.run(client.detector.detect, remote.agent)
        view = with_detected(agent_view(cast("Adapter", remote)), found)
        return _print_properties(msgspec.to_builtins(view), context.obj)
    registry = AdapterRegistry()
    adapter = registry.get(agent)
    with progress("reading versions"):
        found = anyio.run(Detector(registry).detect, adapter.agent)
    state = Auth(homes_for()).check(adapter.agent) if adapter.installation().auth is not None else None
    return _print_properties(msgspec.to_builtins(agent_info(adapter, found, state)), context.obj)


def _print_properties(known: dict[str, Any], invocation: Invocation) -> int:
    if invocation.json:
        print_json(known)
        return 0
    rows = [
        {"property": _words_of(name), "value": ", ".join(map(str, value)) if isinstance(value, list) else value}
        for name, value in known.items()
        if value not in ([], "", None)
    ]
    print_rows(rows, ("property", "value"), invocation)
    return 0


def _words_of(name: str) -> str:
    """Return a camelCase name as words."""
    return "".join(f" {letter.lower()}" if letter.isupper() else letter for letter in name)


@with_common_flags
def detect_host(context: typer.Context) -> int:
    """Report which agent or CI system runs this process.

    They are recognized by their environment variables.
    """
    import os

    from agent_mux.agents.detection import detect_hosts
    from agent_mux.sdk.registry import AdapterRegistry

    rows = [asdict(host) for host in detect_hosts(AdapterRegistry(), os.environ)]
    print_rows(rows, ("kind", "name", "variable"), context.obj, empty="no agent or CI system runs this process")
    return 0


@with_common_flags
@with_service_flags
def capabilities(
    context: typer.Context,
    agent: AgentName,
    model: Annotated[
        str | None,
        typer.Option("--model", "-m", help="Add what this model can do.", show_default=False),
    ] = None,
    config_dir: ConfigDir = None,
) -> int:
    """Show what an agent can do, as proven by recordings and live tests."""
    from agent_mux.api.agents import capabilities_json, capabilities_of
    from agent_mux.api.models import matched_model_json
    from agent_mux.models.registry import Models
    from agent_mux.sdk.registry import AdapterRegistry

    service: ServiceEndpoint | None = context.obj.service
    if service is None:
        models, registry = Models(directory=config_dir), AdapterRegistry()
    else:  # the same read interfaces
        models, registry = cast("Models", service.client().models), cast("AdapterRegistry", service.client().adapters)
    adapter = registry.get(agent)
    about_model = None if model is None else matched_model_json(models, adapter.agent, model)
    if context.obj.json:
        print_json({**capabilities_json(adapter), **({} if about_model is None else {"model": about_model})})
        return 0
    known = capabilities_of(adapter)
    events = known.pop("emits")
    known["emits"] = f"{len(events)} event types"
    rows = [{"capability": name.replace("_", " "), "value": value} for name, value in known.items() if value != []]
    rows += [{"capability": f"model: {name}", "value": value} for name, value in _model_facts(about_model or {})]
    print_rows(rows, ("capability", "value"), context.obj)
    return 0


def _model_facts(about: "Mapping[str, Any]") -> "Iterator[tuple[str, Any]]":
    """Yield the properties of a model as words and values; those of its prices with the kind of tokens."""
    for name, value in about.items():
        if isinstance(value, dict):
            yield from ((f"{_words_of(name)} {inner}", each) for inner, each in _model_facts(value))
        elif value not in ([], (), None, "") and name != "agent":
            yield _words_of(name), list(value) if isinstance(value, tuple) else value


auth = typer.Typer(help="Credentials of the agents; never prints secrets.", no_args_is_help=True)


@auth.command("check")
@with_common_flags
def check_auth(
    context: typer.Context,
    agent: Annotated[
        str | None,
        typer.Argument(metavar="[AGENT]", help="Agent (default: all).", show_default=False),
    ] = None,
) -> int:
    """Check for credentials in environment variables and files.

    Uses no network, opens no keyring and prints no secrets. For a single agent, the exit code is 5 if it has no
    credentials.
    """
    from agent_mux.agents.auth import Auth
    from agent_mux.cli.exit_codes import for_error

    looked = Auth(homes_for())
    states = looked.check_all() if agent is None else [looked.check(agent)]
    rows = [_auth_row(state, for_people=not context.obj.json) for state in states]
    print_rows(rows, ("agent", "status", "method", "where", "expires", "problem"), context.obj)
    is_lacking = agent is not None and states[0].status in {"unauthenticated", "expired"}
    return for_error("AUTH_ERROR") if is_lacking else 0


@auth.command("setup")
@with_common_flags
def show_auth_setup(context: typer.Context, agent: AgentName) -> int:
    """Show how to authenticate an agent; one of the listed ways is enough."""
    import sys

    from agent_mux.agents.auth import Auth
    from agent_mux.cli.terminal import sanitize
    from agent_mux.sdk.registry import AdapterRegistry

    steps = Auth(homes_for()).setup(agent)
    program = AdapterRegistry().get(agent).executables[0]
    rows = [_setup_step(step, program) for step in steps]
    if context.obj.json:
        print_json(rows)
        return 0
    for step in rows:
        command = step.get("command") or (f"export {step['variable']}=..." if step.get("variable") else "")
        sys.stdout.write(sanitize(f"{step['text']}\n") + (f"    {command}\n" if command else ""))
    return 0


def _auth_row(state: "AuthState", *, for_people: bool) -> dict[str, Any]:
    expires = state.expires_at
    row = {
        "agent": state.agent,
        "status": state.status,
        "method": state.method,
        "where": state.where,
        "problem": state.problem,
    }
    if for_people:
        return {**row, "expires": None if expires is None else local_minute(expires)}
    return {**row, "expiresAt": expires}


def _setup_step(step: "SetupStep", program: str) -> dict[str, Any]:
    command = " ".join((program, *step.command)) if step.command else None
    return {"text": step.text, "command": command, "variable": step.variable}
