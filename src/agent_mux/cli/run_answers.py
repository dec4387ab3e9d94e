"""The answer of `amux runs answer` as a command: what a word means depends on the request that it answers."""

from pathlib import Path
from typing import Any

from agent_mux.cli.command_output import ServiceEndpoint

_YES, _ALWAYS, _NO = frozenset({"y", "yes"}), frozenset({"a", "always"}), frozenset({"n", "no"})


def command_for(  # one for each part of the command line
    run: str,
    text: str,
    reason: str | None,
    interaction: str | None,
    service: ServiceEndpoint | None,
    config_dir: Path | None,
) -> dict[str, Any]:
    """Return the command. Raises NO_PENDING_INTERACTION, INTERACTION_NOT_FOUND, VALIDATION_ERROR for other words."""
    from agent_mux.cli.errors import usage_error
    from agent_mux.errors import AgentMuxError

    pending = _pending(run, service, config_dir)
    if not pending:
        message = f"run {run} waits for no answer; `amux runs watch {run}` shows what it does"
        raise AgentMuxError("NO_PENDING_INTERACTION", message)
    asked = next((one for one in pending if interaction in {None, one["id"]}), None)
    if asked is None:
        ids = ", ".join(one["id"] for one in pending)
        raise AgentMuxError("INTERACTION_NOT_FOUND", f"run {run} has no request {interaction}; it has: {ids}")
    word, options = text.strip().lower(), asked["detail"].get("options", ())
    about = {"interactionId": asked["id"]}
    if asked["type"] == "approval":
        if word in _YES | _ALWAYS:
            return {"type": "approve", **about, "always": word in _ALWAYS}
        if word in _NO:
            return {"type": "deny", **about, "reason": reason}
        raise usage_error(f"{asked['description']!r} is an approval: answer yes, always or no; got {text!r}")
    if word.isascii() and word.isdigit() and 1 <= int(word) <= len(options):
        return {"type": "answer", **about, "option": int(word) - 1}
    if not word:
        raise usage_error("the answer is empty; give a text or the number of an option")
    return {"type": "answer", **about, "text": text}


def _pending(run: str, service: ServiceEndpoint | None, config_dir: Path | None) -> list[dict[str, Any]]:
    import msgspec

    from agent_mux.cli.run_selection import find_local, remote_id
    from agent_mux.run.base import TERMINAL_STATES

    if service is None:
        from agent_mux.client.local_runs.listing import not_controllable

        _, record = find_local(run, config_dir)
        if record.socket is None:
            raise not_controllable(record)
        return [msgspec.to_builtins(one) for one in record.pending]
    from agent_mux.client.local_runs.listing import run_is_over

    details = service.client().runs.get(remote_id(service, run))
    if details.state in TERMINAL_STATES:
        raise run_is_over(details.run_id, details.state)
    return [msgspec.to_builtins(one) for one in details.pending]
