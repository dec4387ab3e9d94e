"""Recognize failed connections in the messages of agents: refused, dropped, unresolved.

Agents quote the message of their HTTP client: Node and Bun (error names), undici, the SDKs of OpenAI and Anthropic,
reqwest, httpx. An HTTP status in front means that the provider answered.
"""

import re

from agent_mux.sdk import ErrorCode

_ANSWERED = r"\W{0,3}(?:error:? |HTTP |status(?: code)?:? ){0,2}[45]\d\d\b"
_FAILED = (
    r"\b(?:ECONN(?:REFUSED|RESET|ABORTED)|ENOTFOUND|EAI_(?:AGAIN|FAIL|NONAME|NODATA)|ETIMEDOUT|E(?:HOST|NET)UNREACH)\b"
    r"|\bconnection (?:was )?(?:refused|reset|error|failed|closed|aborted|lost|timed out|attempts failed)\b"
    r"|\b(?:could not|unable to|failed to|cannot) connect\b|\b(?:can't|cannot|could not) reach\b"
    r"|\b(?:fetch failed|socket hang up|getaddrinfo|error sending request|error resolving dns|dns error"
    r"|network error|network is unreachable|name or service not known|name resolution|no route to host"
    r"|error decoding response body|stream closed before response\.completed|premature close"
    r"|server disconnected|incomplete chunked read|other side closed)\b"
    r"|\bsocket connection was closed\b|(?:^|: )terminated$"
)


def network_code_of(message: str) -> ErrorCode:
    """Return NETWORK_ERROR for the message of a failed connection, AGENT_CRASH for any other."""
    has_status = re.match(_ANSWERED, message, re.IGNORECASE) is not None
    if not has_status and re.search(_FAILED, message, re.IGNORECASE | re.MULTILINE) is not None:
        return "NETWORK_ERROR"
    return "AGENT_CRASH"
