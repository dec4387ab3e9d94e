"""What an agent said of its models, filled up with what was known of them before."""

from msgspec import structs

from agent_mux.models.listed import Listed
from agent_mux.models.naming import find_model
from agent_mux.sdk.models import ModelCapabilities, Price

ROUNDED = 0.05  # of a size: 1.0M stands for 1,048,576
_SIZES = ("context_window", "max_output_tokens")


def merged(listed: Listed, known: tuple[ModelCapabilities, ...]) -> tuple[ModelCapabilities, ...]:
    """The models that the agent listed. What it says counts; what it does not say is as it was known."""
    return tuple(_filled(said, find_model(known, said.model_id), listed) for said in listed.models)


def _filled(said: ModelCapabilities, known: ModelCapabilities | None, listed: Listed) -> ModelCapabilities:
    today = listed.at.date()
    if known is None:
        return structs.replace(said, as_of=today)
    fields = {name: getattr(said, name) or getattr(known, name) for name in said.__struct_fields__}
    sizes = {name: _size(getattr(said, name), getattr(known, name)) for name in _SIZES}
    # A version with a date of its own has not the aliases of the model.
    alias = known.alias if said.model_id == known.model_id else ()
    return structs.replace(
        said, **{**fields, **sizes, "alias": alias, "price": _price(said.price, known.price), "as_of": today}
    )


def _size(said: int | None, known: int | None) -> int | None:
    """The exact one, where the other is the same but for rounding."""
    if said is None or known is None:
        return said or known
    return known if abs(said - known) <= ROUNDED * known else said


def _price(said: Price | None, known: Price | None) -> Price | None:
    """Ours where they agree on short calls: agents leave out what long ones cost, or have it from an older list."""
    if said is None or known is None:
        return said or known
    agree = all(getattr(said, name) == getattr(known, name) for name in ("input", "output"))
    return known if agree else said
