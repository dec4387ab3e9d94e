"""What the document says in words."""

from collections.abc import Mapping

from agent_mux.errors import AnyCode

EVERYWHERE: tuple[AnyCode, ...] = ("UNAUTHENTICATED", "FORBIDDEN", "UNAVAILABLE", "INTERNAL")
"""What can go wrong wherever a token is wanted."""
REFUSED: Mapping[int, str] = {
    408: "It is too slow.",
    413: "Its body is too large.",
    414: "Its target is too long.",
    415: "A body from a browser is not JSON.",
    421: "It is for another host.",
    431: "Its headers are too large.",
}
"""Requests that are refused whatever they ask for."""
ABOUT = """Drive coding agents over HTTP: start runs, watch what happens in them, answer what they ask.

JSON is camelCase; a field that is not there is left out. Times are milliseconds since the epoch, durations are
milliseconds, money is US dollars. No text has NUL characters. Errors are problem details (RFC 9457) with a `code`.
What is too slow (408) or too large (413, 414, 431), from a browser and not JSON (415), or for another host (421) is
refused whatever it asks for."""
TAGS: Mapping[str, str] = {
    "runs": "Start runs, find them, forget them.",
    "events": "What happens in a run: Server-Sent Events or JSON lines.",
    "commands": "Tell a run something: prompts, answers, interruption.",
    "agents": "The agents that can be driven, and what is installed.",
    "models": "The models that agents offer, and their prices.",
    "sessions": "The conversations that the agents stored themselves.",
    "cost": "What stored sessions cost.",
    "profiles": "Options of runs under a name.",
    "webhooks": "Other programs that are told of runs.",
    "health": "Whether the process lives, and whether it can work.",
}
PATH_PARAMETERS: Mapping[str, str] = {
    "run_id": "Id of a run: a ULID.",
    "webhook_id": "Id of a webhook: a ULID.",
    "agent": "Name of an agent, or an alias.",
    "model": "Name of a model, or one that means it. It may have slashes.",
    "session_id": "The agent's own id of a session, percent-encoded; or its beginning, if no other begins so.",
}
