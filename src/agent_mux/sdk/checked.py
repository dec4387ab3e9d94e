"""Values that are checked when they are made, whoever makes them."""

from typing import ClassVar


class Checked:
    """Mixin of frozen dataclasses and structs that users make: a wrong field raises `ValidationError`.

    The types are those of the annotations. A list is stored as the tuple that the annotation names, and a mapping as
    the class. A class with further conditions overrides `check`.
    """

    __slots__ = ()
    durations: ClassVar[frozenset[str]] = frozenset()
    """The fields in seconds, which may be given as texts with a unit (`10m`)."""

    def __post_init__(self) -> None:
        from agent_mux.sdk.checked_values import check_fields  # noqa: PLC0415  # not needed until a value is made

        check_fields(self, f"{type(self).__name__}.")
        self.check()

    def check(self) -> None:
        """Raise `ValidationError` for values that have the right type and cannot be used."""
