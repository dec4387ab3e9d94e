"""Where a service is, and who asks."""

import ipaddress
import os
import re
import ssl
from dataclasses import dataclass, field
from functools import cache

import httpx

from agent_mux._util.version import __version__
from agent_mux.errors import FieldError, ValidationError
from agent_mux.redaction import HIDDEN

URL_VARIABLE = "AGENT_MUX_SERVER"
TOKEN_VARIABLE = "AGENT_MUX_SERVER_TOKEN"  # noqa: S105  # the name of it
_TOKEN = re.compile(r"[!-~]+")
_URLS = "http://HOST:PORT or https://HOST, with or without a path"
KEPT_CONNECTIONS = 20
KEPT_FOR = 5.0  # seconds; the service closes what is idle for longer, and might do so while we ask


@dataclass(frozen=True, slots=True)
class Address:
    """A service."""

    url: str
    """Without a slash at its end."""
    token: str | None = field(default=None, repr=False)

    @classmethod
    def of(cls, url: str | None, token: str | None) -> "Address":
        """As given, else as the environment says. Raises `ValidationError` for what is none."""
        url = url or os.environ.get(URL_VARIABLE)
        if not url:
            raise ValidationError([FieldError("url", url, f"{_URLS}; or say it in {URL_VARIABLE}")])
        token = token or os.environ.get(TOKEN_VARIABLE) or None
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValidationError([FieldError("token", HIDDEN, "printable ASCII characters without blanks")])
        return cls(_checked(url), token)

    @property
    def headers(self) -> dict[str, str]:
        """With every request."""
        known = {"user-agent": f"agent-mux/{__version__}"}
        return known if self.token is None else {**known, "authorization": f"Bearer {self.token}"}

    @property
    def is_here(self) -> bool:
        """On this machine, without a proxy between."""
        host = httpx.URL(self.url).host
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return host == "localhost"

    def client(self) -> httpx.Client:
        """To ask, blocking."""
        return httpx.Client(headers=self.headers, verify=self._trusted(), trust_env=not self.is_here)

    def async_client(self) -> httpx.AsyncClient:
        """To ask, on asyncio and trio."""
        # One connection for each run that is watched: no limit.
        limits = httpx.Limits(
            max_connections=None, max_keepalive_connections=KEPT_CONNECTIONS, keepalive_expiry=KEPT_FOR
        )
        return httpx.AsyncClient(
            headers=self.headers, verify=self._trusted(), trust_env=not self.is_here, limits=limits
        )

    def _trusted(self) -> ssl.SSLContext | bool:
        """Reading the certificates of a machine takes longer than a request: not where there is no TLS."""
        return self.url.startswith("https:") and _trusted()


@cache
def _trusted() -> ssl.SSLContext:
    return ssl.create_default_context()


def _checked(url: str) -> str:
    try:
        parsed = httpx.URL(url)
    except httpx.InvalidURL as error:
        raise ValidationError([FieldError("url", url, f"{_URLS} ({error})")]) from error
    if parsed.scheme not in {"http", "https"} or not parsed.host or parsed.query or parsed.fragment:
        raise ValidationError([FieldError("url", url, _URLS)])
    if parsed.userinfo:
        raise ValidationError([FieldError("url", HIDDEN, f"no name and password: the token goes in {TOKEN_VARIABLE}")])
    return str(parsed).rstrip("/")
