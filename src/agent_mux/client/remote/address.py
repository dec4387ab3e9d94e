"""The address of a service: its URL and token, and HTTP clients for it."""

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass, field
from functools import cache

from agent_mux._util.version import __version__
from agent_mux.client.remote import lazy_httpx as httpx
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN

URL_VARIABLE = "AGENT_MUX_SERVER"
TOKEN_VARIABLE = "AGENT_MUX_SERVER_TOKEN"  # noqa: S105  # the name of it
_TOKEN = re.compile(r"[!-~]+")
_URL_FORMS = "http://HOST:PORT or https://HOST, with or without a path"
MAX_PORT = 65535
MAX_IDLE_CONNECTIONS = 20
IDLE_TIMEOUT = 5.0  # seconds; shorter than the service's own limit, so that it never closes a connection that we use


@dataclass(frozen=True, slots=True)
class Address:
    """The URL and the token of a service."""

    url: str
    """The base URL, without a trailing slash."""
    token: str | None = field(default=None, repr=False)
    """The bearer token, None when requests are not authenticated."""

    @classmethod
    def of(cls, url: str | None, token: str | None) -> "Address":
        """Return the address; `$AGENT_MUX_SERVER` and `$AGENT_MUX_SERVER_TOKEN` replace what is not given.

        Raises `ValidationError` for a missing or invalid URL and for an invalid token.
        """
        url = url or os.environ.get(URL_VARIABLE)
        if not url or not isinstance(url, str):
            raise ValidationError([FieldError("url", url, f"{_URL_FORMS}; or set {URL_VARIABLE}")])
        token = token or os.environ.get(TOKEN_VARIABLE) or None
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValidationError([FieldError("token", HIDDEN, "printable ASCII characters without blanks")])
        return cls(_validate_url(url), token)

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every request."""
        headers = {"user-agent": f"agent-mux/{__version__}"}
        return headers if self.token is None else {**headers, "authorization": f"Bearer {self.token}"}

    @property
    def is_local(self) -> bool:
        """Whether the service is on this machine, so that no proxy is used."""
        host = httpx.URL(self.url).host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def client(self) -> "httpx.Client":
        """Return a new blocking HTTP client."""
        return httpx.Client(headers=self.headers, verify=self._tls_context(), trust_env=not self.is_local)

    def async_client(self) -> "httpx.AsyncClient":
        """Return a new HTTP client for asyncio and trio."""
        # One connection for each run that is followed: no limit.
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=MAX_IDLE_CONNECTIONS, keepalive_expiry=IDLE_TIMEOUT
        )
        return httpx.AsyncClient(
            headers=self.headers, verify=self._tls_context(), trust_env=not self.is_local, limits=limits
        )

    def _tls_context(self) -> ssl.SSLContext | bool:
        # Without TLS, the certificates of the machine are not read: that takes longer than a request.
        return self.url.startswith("https:") and _default_tls_context()


@cache
def _default_tls_context() -> ssl.SSLContext:
    return ssl.create_default_context()


def _validate_url(url: str) -> str:
    """Return the URL without a trailing slash. Raises `ValidationError` for anything but a plain HTTP URL."""
    shown = HIDDEN if _may_have_secrets(url) else url
    try:
        parsed = httpx.URL(url)
    except (httpx.InvalidURL, UnicodeEncodeError) as error:  # bytes of a command line that are not UTF-8
        reason = "" if shown == HIDDEN else f" ({error})"
        raise ValidationError([FieldError("url", shown, f"{_URL_FORMS}{reason}")]) from error
    if parsed.userinfo or "@" in url:
        raise ValidationError([FieldError("url", HIDDEN, f"no name and password: the token goes in {TOKEN_VARIABLE}")])
    if parsed.scheme not in {"http", "https"} or not parsed.host or (parsed.port or 0) > MAX_PORT:
        raise ValidationError([FieldError("url", shown, _URL_FORMS)])
    if parsed.query or parsed.fragment:
        allowed = f"no query and no fragment: the token goes in {TOKEN_VARIABLE}"
        raise ValidationError([FieldError("url", HIDDEN, allowed)])
    return str(parsed).rstrip("/")


def _may_have_secrets(url: str) -> bool:
    """Return whether the text has a part in which people write passwords and tokens."""
    return any(mark in url for mark in "@?#")
