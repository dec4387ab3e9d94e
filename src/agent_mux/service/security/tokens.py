"""What a request needs, and what a caller has. The one table: routes do not decide.

Tokens: `amux_<id>_<secret>`, a form that scanners of secrets, and our own redaction, know.

The secret is 256 bits out of the system's random numbers. So a plain SHA-256 of it is what is stored: slow hashes
protect what people make up; nobody can try all of these.
"""

import hashlib
import hmac
import re
import secrets
import string
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, get_args

Scope = Literal["read", "run", "admin"]
SCOPES: tuple[Scope, ...] = get_args(Scope)
"""Each includes those before it."""
PUBLIC_PATHS = frozenset({"/health", "/ready"})
ADMIN_PATHS = ("/v1/webhooks",)
"""With all below them."""
ADMIN_WRITE_PATHS = ("/v1/profiles",)
"""The same, but everybody who may read may read them: they hold for the runs of others, too."""
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})


@dataclass(frozen=True, slots=True)
class Caller:
    """Who asks: a token, or somebody on this machine where there are no tokens."""

    name: str
    """Of the token; empty without one."""
    scopes: frozenset[Scope]

    def may(self, scope: Scope) -> bool:
        """One of the scopes is or includes this one."""
        return any(SCOPES.index(own) >= SCOPES.index(scope) for own in self.scopes)


LOCAL_CALLER = Caller("", frozenset(SCOPES))
"""Whoever can connect, where no tokens are needed."""


def needed_scope(method: str, path: str) -> Scope | None:
    """None: everybody may. A WebSocket begins as GET; whether its commands are obeyed is seen to there."""
    if path in PUBLIC_PATHS and method in READ_METHODS:
        return None
    is_read = method in READ_METHODS
    if _is_below(path, ADMIN_PATHS) or (not is_read and _is_below(path, ADMIN_WRITE_PATHS)):
        return "admin"
    return "read" if is_read else "run"


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def parse_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Those that there are; others are none of ours."""
    wanted = frozenset(names)
    return frozenset(scope for scope in SCOPES if scope in wanted)


PREFIX = "amux"
_LETTERS = string.ascii_letters + string.digits
_ID_BYTES, _SECRET_LENGTH = 6, 43  # 43 of 62 letters are 256 bits
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{{_ID_BYTES * 2}}})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")
UNMATCHED_HASH = "0" * 64
"""The hash of no secret: what an unknown id is compared with, so that it takes as long as a known one."""


@dataclass(frozen=True, slots=True)
class Token:
    """What a client shows. Only its id may be written down."""

    id: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"{PREFIX}_{self.id}_{self.secret}"

    @property
    def hash(self) -> str:
        """What is stored of the secret."""
        return hash_secret(self.secret)


def new_token(token_id: str | None = None) -> Token:
    """One that nobody has yet. `token_id`: with a new secret for this one."""
    secret = "".join(secrets.choice(_LETTERS) for _ in range(_SECRET_LENGTH))
    return Token(token_id or secrets.token_hex(_ID_BYTES), secret)


def read_token(text: str) -> Token | None:
    """The token in a text; None: it is none."""
    found = _FORM.fullmatch(text)
    return None if found is None else Token(found[1], found[2])


def bearer_token(authorization: str) -> Token | None:
    """The token in an `Authorization` header. Source: RFC 6750, section 2.1."""
    scheme, _, credentials = authorization.partition(" ")
    return read_token(credentials.strip()) if scheme.lower() == "bearer" else None


def hash_secret(secret: str) -> str:
    """SHA-256, in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches_any(secret: str, *hashes: str | None) -> bool:
    """The secret has one of these hashes. All are compared, each in constant time; None stands for one nobody has."""
    own = hash_secret(secret)
    matches = [hmac.compare_digest(own, known or UNMATCHED_HASH) for known in hashes]
    return any(matches)
