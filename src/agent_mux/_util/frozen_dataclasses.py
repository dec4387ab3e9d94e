"""Frozen dataclasses that are cheap to define: their methods are shared, not generated for each class.

`dataclasses.dataclass` compiles the source of six methods for each frozen class, which takes 0.6 ms; `amux run` imports
dozens of such classes before it starts the agent. The classes made here are dataclasses for `fields`, `replace`,
`asdict`, `is_dataclass` and type checkers. Creating, comparing and hashing an instance takes a few microseconds more.
"""

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError, InitVar, fields
from functools import cache
from inspect import Parameter, Signature
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, TypeVar

_Class = TypeVar("_Class", bound=type)


class _InitSignature:
    """The signature of the constructor, made when it is inspected, because `__init__` accepts any arguments."""

    def __get__(self, instance: object, owner: Any) -> Signature:
        return Signature([_as_parameter(field) for field in sorted(_parameters(owner), key=_is_keyword)])


def _as_parameter(field: Field[Any]) -> Parameter:
    kind = Parameter.KEYWORD_ONLY if field.kw_only else Parameter.POSITIONAL_OR_KEYWORD
    default = field.default if field.default_factory is MISSING else field.default_factory
    return Parameter(
        field.name, kind, default=Parameter.empty if default is MISSING else default, annotation=field.type
    )


def _is_keyword(field: Field[Any]) -> bool:
    return bool(field.kw_only)


@cache
def _parameters(kind: Any) -> tuple[Field[Any], ...]:
    """Return the parameters of the constructor: the fields, and the `InitVar`s."""
    own = fields(kind)
    declared: dict[str, Field[Any]] = kind.__dataclass_fields__
    return tuple(field for field in declared.values() if field in own or isinstance(field.type, InitVar))


def _init(self: Any, /, *args: Any, **values: Any) -> None:
    kind: Any = type(self)
    if args:
        _add_positional(kind, args, values)
    passed_on, missing = [], []
    for field in _parameters(kind):
        value: Any = values.pop(field.name, field.default)
        factory: Any = field.default_factory
        if value is MISSING and factory is not MISSING:
            value = factory()
        if value is MISSING:
            missing.append(field.name)
        elif isinstance(field.type, InitVar):
            passed_on.append(value)
        else:
            object.__setattr__(self, field.name, value)
    if values:
        raise TypeError(f"{kind.__name__}() got an unexpected keyword argument {next(iter(values))!r}")
    if missing:
        raise TypeError(f"{kind.__name__}() is missing required arguments: {', '.join(map(repr, missing))}")
    if hasattr(kind, "__post_init__"):
        self.__post_init__(*passed_on)


def _add_positional(kind: Any, args: tuple[Any, ...], values: dict[str, Any]) -> None:
    names = [field.name for field in _parameters(kind) if not field.kw_only]
    if len(args) > len(names):
        raise TypeError(f"{kind.__name__}() takes {len(names)} positional arguments but {len(args)} were given")
    for name, value in zip(names, args, strict=False):
        if name in values:
            raise TypeError(f"{kind.__name__}() got multiple values for argument {name!r}")
        values[name] = value


@recursive_repr()
def _repr(self: Any) -> str:
    shown = (f"{field.name}={getattr(self, field.name)!r}" for field in fields(self) if field.repr)
    return f"{type(self).__qualname__}({', '.join(shown)})"


def _values(instance: Any) -> tuple[Any, ...]:
    return tuple(getattr(instance, field.name) for field in fields(instance) if field.compare)


def _eq(self: Any, other: object) -> Any:
    return _values(self) == _values(other) if type(other) is type(self) else NotImplemented


def _is_hashed(field: Field[Any]) -> bool:
    return field.compare if field.hash is None else field.hash


def _hash(self: Any) -> int:
    return hash(tuple(getattr(self, field.name) for field in fields(self) if _is_hashed(field)))


def _setattr(self: Any, name: str, value: Any) -> None:  # noqa: ARG001  # the signature of the special method
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _delattr(self: Any, name: str) -> None:  # noqa: ARG001  # the signature of the special method
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _getstate(self: Any) -> list[Any]:
    return [getattr(self, field.name) for field in fields(self)]


def _setstate(self: Any, state: list[Any]) -> None:
    for field, value in zip(fields(self), state, strict=True):
        object.__setattr__(self, field.name, value)


_METHODS = {
    "__init__": _init,
    "__repr__": _repr,
    "__eq__": _eq,
    "__hash__": _hash,
    "__setattr__": _setattr,
    "__delattr__": _delattr,
    "__getstate__": _getstate,
    "__setstate__": _setstate,
    "__signature__": _InitSignature(),
}


if TYPE_CHECKING:
    from dataclasses import dataclass
else:

    def dataclass(*, frozen: bool, slots: bool, kw_only: bool = False) -> Callable[[_Class], _Class]:
        """Return the decorator for frozen dataclasses with slots, which do not inherit from another dataclass."""

        def decorate(kind: _Class) -> _Class:
            if not (frozen and slots) or dataclasses.is_dataclass(kind):
                raise TypeError(f"{kind.__name__}: only frozen classes with slots and without dataclasses as bases")
            for name, method in _METHODS.items():
                if name not in kind.__dict__:
                    setattr(kind, name, method)
            made = dataclasses.dataclass(init=False, repr=False, eq=False, slots=True, kw_only=kw_only)(kind)
            made.__dataclass_params__.frozen = True  # so that dataclasses that inherit from it must be frozen
            return made

        return decorate


__all__ = ["dataclass"]
