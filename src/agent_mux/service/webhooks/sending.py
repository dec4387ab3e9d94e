"""One attempt to deliver a message: a signed POST to an address that was checked.

Redirects are not followed, proxies are not used, and of the answer the status and the headers count: its body is not
read.
"""

import ssl
import time
from collections.abc import Sequence
from dataclasses import dataclass

import anyio
import httpx
from anyio import to_thread

from agent_mux._util.version import __version__
from agent_mux.service.webhooks.schedule import RefusedError, Resolve, addresses_for, asked_delay, resolve
from agent_mux.webhooks import ID, SIGNATURE, TIMESTAMP, sign

TIMEOUT = 10.0  # seconds to connect, and for each byte that is waited for
WHOLE_TIMEOUT = 30.0  # seconds for one attempt, whatever happens
PORTS = {"http": 80, "https": 443}


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of an attempt."""

    status: int | None = None
    error: str | None = None
    """Why there is no good answer: one line, without the URL, which may have a secret in it."""
    asked_delay: float | None = None
    """Seconds that the receiver wants to be left alone for."""
    is_refused: bool = False
    """It was not sent: it may not go there."""

    @property
    def is_delivered(self) -> bool:
        """The receiver has it."""
        return self.status is not None and 200 <= self.status < 300

    @property
    def is_gone(self) -> bool:
        """The receiver wants no more messages, ever."""
        return self.status == 410


class Sender:
    """Sends messages."""

    def __init__(self, *, allow_private: bool, look_up: Resolve = resolve) -> None:
        self._allow_private = allow_private
        self._look_up = look_up
        self._trusted: ssl.SSLContext | None = None

    async def send(self, url: str, secrets: Sequence[str], id_: str, body: bytes) -> Answer:
        """Try it. Raises nothing for what the network or the receiver does."""
        try:
            with anyio.fail_after(WHOLE_TIMEOUT):
                return await self._send(httpx.URL(url), secrets, id_, body)
        except RefusedError as error:
            return Answer(error=str(error), is_refused=True)
        except Exception as error:  # noqa: BLE001  # what somebody's receiver does must not end the service
            return Answer(error=_reason(error))

    async def _send(self, url: httpx.URL, secrets: Sequence[str], id_: str, body: bytes) -> Answer:
        host = url.raw_host.decode()
        port = url.port or PORTS[url.scheme]
        addresses = await addresses_for(host, port, allow_private=self._allow_private, look_up=self._look_up)
        if self._trusted is None:
            self._trusted = await to_thread.run_sync(ssl.create_default_context)
        now = int(time.time())
        headers = {
            "host": url.netloc.decode(),
            "content-type": "application/json",
            "user-agent": f"agent-mux/{__version__}",
            ID: id_,
            TIMESTAMP: str(now),
            SIGNATURE: sign(secrets, id_, now, body),
        }
        *others, last = addresses
        for address in others:
            try:
                return await self._post(url, host, address, headers, body)
            except (httpx.ConnectError, httpx.ConnectTimeout):
                continue
        return await self._post(url, host, last, headers, body)

    async def _post(self, url: httpx.URL, host: str, address: str, headers: dict[str, str], body: bytes) -> Answer:
        # A client for each attempt: a connection that is used again for another name at the same address would have
        # the certificate of the first name.
        async with httpx.AsyncClient(
            verify=self._trusted or True, trust_env=False, timeout=TIMEOUT, follow_redirects=False
        ) as client:
            request = client.build_request("POST", url.copy_with(host=address), headers=headers, content=body)
            request.extensions["sni_hostname"] = host
            response = await client.send(request, stream=True)
            try:
                return _answer(response)
            finally:
                await response.aclose()


def _answer(response: httpx.Response) -> Answer:
    status = response.status_code
    if 200 <= status < 300:
        return Answer(status)
    moved = "; redirects are not followed, give the webhook the new URL" if 300 <= status < 400 else ""
    return Answer(status, f"the receiver answered {status}{moved}", asked_delay(status, response.headers, time.time()))


def _reason(error: Exception) -> str:
    if isinstance(error, TimeoutError | httpx.TimeoutException):
        return "the receiver did not answer in time"
    return " ".join(str(error).split())[:200] or type(error).__name__
