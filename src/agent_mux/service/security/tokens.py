"""Tokens and scopes: the form of tokens, and which scope a request needs. Routes make no such decision.

A token is `amux_<id>_<secret>`, a form that secret scanners and our own redaction recognise. The secret has 256 random
bits, so a plain SHA-256 of it is stored: slow hashes protect guessable passwords only.
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
"""Readable without a token."""
ADMIN_PATHS = ("/v1/webhooks", "/v1/audit")
"""Need the scope `admin`, with everything below them."""
ADMIN_WRITE_PATHS = ("/v1/profiles", "/v1/sessions")
"""Need the scope `admin` for writing only: everybody's runs use profiles, and sessions may be anybody's."""
RUN_FILE = re.compile(r"/v1/runs/[^/]+/files/")
"""Begin of the paths of files, which need the scope `run`: the working directory may have files with secrets."""
READ_METHODS = frozenset({"GET", "HEAD", "OPTIONS"})
PREFIX = "amux"
_LETTERS = string.ascii_letters + string.digits
_ID_BYTES, _SECRET_LENGTH = 6, 43  # 43 of 62 letters are 256 bits
_FORM = re.compile(rf"{PREFIX}_([0-9a-f]{{{_ID_BYTES * 2}}})_([A-Za-z0-9]{{{_SECRET_LENGTH}}})")
UNMATCHED_HASH = "0" * 64
"""A hash that no secret has. Unknown ids are compared with it, so that they take as long as known ones."""


@dataclass(frozen=True, slots=True)
class RateLimits:
    """Limits per minute. None: as the server has it; 0: no limit."""

    requests: int | None = None
    runs: int | None = None


@dataclass(frozen=True, slots=True)
class Caller:
    """The sender of a request: a token, or a local user of a service without tokens."""

    name: str
    """Name of the token; empty without one."""
    scopes: frozenset[Scope]
    token_id: str = ""
    """The part of the token that may be shown; empty without one."""
    limits: RateLimits = RateLimits()
    secret_hash: str = field(default="", repr=False)
    """The hash of the secret that the caller presented: a rotation ends what uses the old one."""

    def may(self, scope: Scope) -> bool:
        """Return whether one of the scopes is or includes this one."""
        return any(SCOPES.index(own) >= SCOPES.index(scope) for own in self.scopes)


LOCAL_CALLER = Caller("", frozenset(SCOPES))
"""Every caller of a service that needs no token."""


def needed_scope(method: str, path: str) -> Scope | None:
    """Return the scope that a request needs; None: public.

    A WebSocket starts as GET; its commands are checked separately.
    """
    if path in PUBLIC_PATHS and method in READ_METHODS:
        return None
    is_read = method in READ_METHODS
    if _is_below(path, ADMIN_PATHS) or (not is_read and _is_below(path, ADMIN_WRITE_PATHS)):
        return "admin"
    return "read" if is_read and RUN_FILE.match(path) is None else "run"


def _is_below(path: str, places: tuple[str, ...]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)


def parse_scopes(names: Iterable[str]) -> frozenset[Scope]:
    """Return the known scopes among the names."""
    given = frozenset(names)
    return frozenset(scope for scope in SCOPES if scope in given)


@dataclass(frozen=True, slots=True)
class Token:
    """A token with its secret. Only the id may be logged."""

    id: str
    secret: str = field(repr=False)

    def __str__(self) -> str:
        return f"{PREFIX}_{self.id}_{self.secret}"

    @property
    def hash(self) -> str:
        """The stored hash of the secret."""
        return hash_secret(self.secret)


def new_token(token_id: str | None = None) -> Token:
    """Create a random token. `token_id`: create a new secret for this id."""
    secret = "".join(secrets.choice(_LETTERS) for _ in range(_SECRET_LENGTH))
    return Token(token_id or secrets.token_hex(_ID_BYTES), secret)


def read_token(text: str) -> Token | None:
    """Parse a token; None if the text is not one."""
    found = _FORM.fullmatch(text)
    return None if found is None else Token(found[1], found[2])


def bearer_token(authorization: str) -> Token | None:
    """Parse the token in an `Authorization` header (RFC 6750, section 2.1)."""
    scheme, _, credentials = authorization.partition(" ")
    return read_token(credentials.strip()) if scheme.lower() == "bearer" else None


def hash_secret(secret: str) -> str:
    """Return the SHA-256 of a secret in hex."""
    return hashlib.sha256(secret.encode()).hexdigest()


def matches_any(secret: str, *hashes: str | None) -> bool:
    """Return whether the secret has one of the hashes. All are compared in constant time; None never matches."""
    return is_any_hash(hash_secret(secret), *hashes)


def is_any_hash(own: str, *hashes: str | None) -> bool:
    """Return the same for the hash of a secret."""
    matches = [hmac.compare_digest(own, known or UNMATCHED_HASH) for known in hashes]
    return any(matches)
