"""Rate limits of tokens: requests per minute, and started runs per minute.

Each token has a bucket for each of the two, which holds one minute's worth and is refilled continuously. No token can
use up what belongs to another one. Callers of a service without tokens share a bucket. Buckets are kept in memory by
each server, for tokens that were used in the last minute: an older one is full, like a new one.

Responses have the fields `RateLimit-Policy` and `RateLimit` (draft-ietf-httpapi-ratelimit-headers-10), and those of
its earlier versions, which more clients read: `RateLimit-Limit`, `RateLimit-Remaining` and `RateLimit-Reset`.
"""

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agent_mux.service.problems import RetryLaterError
from agent_mux.service.security.tokens import Caller, RateLimits

WINDOW = 60.0  # seconds
PRUNE_AT = 1024
"""Buckets; when there are more, those that are full are dropped."""
Policy = Literal["requests", "runs"]
NEVER_REFUSED = ("/abort", "/kill", "/stop")
"""Ends of paths of commands that always pass: a limit must not keep anybody from stopping an agent."""


@dataclass(frozen=True, slots=True)
class RateStatus:
    """What is left of a limit."""

    policy: Policy
    limit: int
    """Per minute."""
    remaining: int
    reset: int
    """Seconds until the whole limit is available."""


@dataclass(slots=True)
class _Bucket:
    level: float
    filled_at: float


class RateLimiter:
    """The buckets of all callers."""

    def __init__(self, defaults: RateLimits, clock: Callable[[], float] = time.monotonic) -> None:
        """`defaults`: limits of callers whose token has none."""
        self._defaults = defaults
        self._clock = clock
        self._buckets: dict[tuple[str, Policy], _Bucket] = {}

    def take(self, caller: Caller, policy: Policy, *, may_refuse: bool = True, count: int = 1) -> RateStatus | None:
        """Take `count` from the caller's bucket and return what is left; None without a limit.

        Raises `RateLimitedError` for a bucket that has less, unless `may_refuse` is false.
        """
        own, default = getattr(caller.limits, policy), getattr(self._defaults, policy)
        limit = default if own is None else own
        if not limit:
            return None
        now = self._clock()
        bucket = self._bucket((caller.token_id, policy), limit, now)
        is_refused = bucket.level < count and may_refuse
        bucket.level = bucket.level if is_refused else max(bucket.level - count, 0.0)
        per_second = limit / WINDOW
        status = RateStatus(policy, limit, int(bucket.level), math.ceil((limit - bucket.level) / per_second))
        if is_refused:
            raise RateLimitedError(status, (count - bucket.level) / per_second, count)
        return status

    def _bucket(self, key: tuple[str, Policy], limit: int, now: float) -> _Bucket:
        bucket = self._buckets.get(key)
        if bucket is None:
            if len(self._buckets) >= PRUNE_AT:
                self._prune(now)
            bucket = self._buckets[key] = _Bucket(limit, now)
        bucket.level = min(limit, bucket.level + (now - bucket.filled_at) * limit / WINDOW)
        bucket.filled_at = now
        return bucket

    def _prune(self, now: float) -> None:
        self._buckets = {key: bucket for key, bucket in self._buckets.items() if now - bucket.filled_at < WINDOW}


class RateLimitedError(RetryLaterError):
    """A caller exceeds a rate limit."""

    def __init__(self, status: RateStatus, retry_after: float, count: int = 1) -> None:
        """`retry_after`: seconds until the request is admitted. `count`: what it takes."""
        what = "requests" if status.policy == "requests" else "run starts"
        reason = f"the limit of {status.limit} {what} per minute is reached; try again in {math.ceil(retry_after)} s"
        if count > status.limit:
            reason = f"{count} {what} at once exceed the limit of {status.limit} per minute; request fewer, or raise it"
        super().__init__("LIMIT_EXCEEDED", reason, retry_after)
        self.status = status


def charge(  # noqa: PLR0913  # the request, and what it takes
    state: dict[str, Any], limiter: RateLimiter, caller: Caller, policy: Policy, path: str = "", *, count: int = 1
) -> None:
    """Take `count` from a caller's bucket, and keep the status in the state of the request, for its response.

    Raises `RateLimitedError`.
    """
    statuses: list[RateStatus] = state.setdefault("rate_limits", [])
    try:
        status = limiter.take(caller, policy, may_refuse=not path.endswith(NEVER_REFUSED), count=count)
    except RateLimitedError as error:
        statuses.append(error.status)
        raise
    if status is not None:
        statuses.append(status)


def rate_headers(state: Mapping[str, Any]) -> dict[str, str]:
    """Return the fields for a response; the older ones describe the limit that was charged last."""
    statuses: list[RateStatus] = state.get("rate_limits", [])
    if not statuses:
        return {}
    last = statuses[-1]
    return {
        "ratelimit-policy": ", ".join(f'"{one.policy}";q={one.limit};w={WINDOW:.0f}' for one in statuses),
        "ratelimit": ", ".join(f'"{one.policy}";r={one.remaining};t={one.reset}' for one in statuses),
        "ratelimit-limit": str(last.limit),
        "ratelimit-remaining": str(last.remaining),
        "ratelimit-reset": str(last.reset),
    }
