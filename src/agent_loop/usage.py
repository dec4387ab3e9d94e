"""Token counts and cost of model calls."""

from typing import TypeVar

import msgspec

Number = TypeVar("Number", int, float)


class Usage(msgspec.Struct, frozen=True, omit_defaults=True, gc=False):
    """Token counts and cost of model calls; instances are added with `+`."""

    input_tokens: int = 0
    """Input tokens that were neither read from a cache nor written to one."""
    output_tokens: int = 0
    """Output tokens, thinking included."""
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    thinking_tokens: int | None = None
    """Part of `output_tokens`; None if the provider does not report it."""
    cost_usd: float | None = None
    """None if the price is unknown."""

    @property
    def total_tokens(self) -> int:
        """Sum of prompt and output tokens."""
        return self.prompt_tokens + self.output_tokens

    @property
    def prompt_tokens(self) -> int:
        """Size of the request as the provider counts it, cached tokens included."""
        return self.input_tokens + self.cache_read_tokens + self.cache_write_tokens

    @property
    def cache_hit_rate(self) -> float:
        """Fraction of the prompt tokens that came from a cache, 0 to 1."""
        return self.cache_read_tokens / self.prompt_tokens if self.prompt_tokens else 0.0

    def __add__(self, other: "Usage") -> "Usage":
        return Usage(
            input_tokens=self.input_tokens + other.input_tokens,
            output_tokens=self.output_tokens + other.output_tokens,
            cache_read_tokens=self.cache_read_tokens + other.cache_read_tokens,
            cache_write_tokens=self.cache_write_tokens + other.cache_write_tokens,
            thinking_tokens=_both(self.thinking_tokens, other.thinking_tokens),
            cost_usd=_both(self.cost_usd, other.cost_usd),
        )


def _both(one: Number | None, other: Number | None) -> Number | None:
    if one is None:
        return other
    return one if other is None else one + other
