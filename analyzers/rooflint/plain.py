"""Classes that hold values, as `dataclasses` makes them, in a fraction of the time.

To import `dataclasses` and to make fifty classes with it takes longer than to check a small file.
Whoever asks `dataclasses` for the fields of one, or for a copy, is given them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import count
from operator import attrgetter
from typing import TYPE_CHECKING, Any, TypeVar, cast

_WORTH_COMPILING = 50
"""Objects that are made without in the time that it takes to compile an `__init__`."""

_Class = TypeVar("_Class", bound=type[Any])
_Object = TypeVar("_Object")


class _Field:
    def __init__(self, default: Any, make: Callable[[], Any] | None, compare: bool):
        self.default, self.make, self.compare = default, make, compare


if TYPE_CHECKING:
    from dataclasses import field as field

    from typing_extensions import dataclass_transform
else:

    def field(*, default=..., default_factory=None, compare=True):
        """A field that is made anew for each object, or that does not tell one from another."""
        return _Field(default, default_factory, compare)

    def dataclass_transform(**_):
        return lambda decorator: decorator


@dataclass_transform(frozen_default=True, field_specifiers=(field,))
def plain(cls: _Class) -> _Class:
    """Of values that are the same if their fields are. Nobody changes one: it is as if it were
    frozen, but Python takes three times as long to make a frozen one."""
    return _with_slots(cls, _hash=True)


@dataclass_transform(field_specifiers=(field,))
def changing(cls: _Class) -> _Class:
    """Of objects whose fields are changed."""
    return _with_slots(cls, _hash=False)


def replace(one: _Object, **changes: Any) -> _Object:
    """A copy with other values in some fields."""
    of: Any = type(one)
    for name in of.__match_args__:
        if name not in changes:
            changes[name] = getattr(one, name)
    return of(**changes)


def _with_slots(cls: Any, *, _hash: bool) -> Any:
    fields = {name: _field_of(cls, name) for name in cls.__annotations__}
    compared = _getter([name for name, one in fields.items() if one.compare])

    def equal(one: Any, other: Any) -> bool:
        if one.__class__ is other.__class__:
            return compared(one) == compared(other)
        return NotImplemented

    def hashed(one: Any) -> int:
        return hash(compared(one))

    number = count()

    def first(one: Any, *values: Any, **named: Any) -> None:
        if next(number) >= _WORTH_COMPILING or not _is_filled(one, fields, values, named):
            made.__init__ = initialiser = _initialiser(fields)
            initialiser(one, *values, **named)

    names = tuple(fields)
    body: dict[str, Any] = {
        "__init__": first,
        "__repr__": _shown,
        "__eq__": equal,
        "__hash__": hashed if _hash else None,
    }
    body |= cast("dict[str, Any]", cls.__dict__)
    for name in (*names, "__dict__", "__weakref__"):
        body.pop(name, None)
    body["__slots__"] = body["__match_args__"] = names
    body["__dataclass_fields__"] = _StandardFields(fields)
    made = type(cls)(cls.__name__, cls.__bases__, body)
    return made


def _field_of(cls: type, name: str) -> _Field:
    given = vars(cls).get(name, ...)
    return given if isinstance(given, _Field) else _Field(given, None, True)


def _getter(names: list[str]) -> Callable[[Any], Any]:
    if not names:
        return lambda one: ()
    return attrgetter(*names, names[0])  # Two at least, so that it is a tuple.


def _is_filled(
    one: Any, fields: Mapping[str, _Field], values: Sequence[Any], named: Mapping[str, Any]
) -> bool:
    """Give an object its fields, unless there are too few or others than it has."""
    given = dict(zip(fields, values, strict=False))
    if len(given) < len(values) or given.keys() & named.keys() or named.keys() - fields.keys():
        return False
    given.update(named)
    for name, field in fields.items():
        value = given.get(name, field)
        if value is field:
            value = field.make() if field.make else field.default
            if value is ...:
                return False
        setattr(one, name, value)
    return True


def _initialiser(fields: dict[str, _Field]) -> Any:
    given: dict[str, Any] = {"_none": ...}
    parameters, lines = ["self"], [" pass"]
    for name, field in fields.items():
        value, default, make = name, field.default, field.make
        if make is not None:
            given[f"_make_{name}"], default = make, ...
            parameters.append(f"{name}=_none")
            value = f"_make_{name}() if {name} is _none else {name}"
        elif default is not ...:
            given[f"_default_{name}"] = default
            parameters.append(f"{name}=_default_{name}")
        else:
            parameters.append(name)
        lines.append(f" self.{name} = {value}")
    # Nothing but the names of our own fields, from our own source: as `dataclasses` does it.
    exec(f"def __init__({', '.join(parameters)}):\n" + "\n".join(lines), given)
    return given["__init__"]


def _shown(one: Any) -> str:
    shown = ", ".join(f"{name}={getattr(one, name)!r}" for name in one.__match_args__)
    return f"{type(one).__qualname__}({shown})"


class _StandardFields:
    """The fields as `dataclasses` has them, once somebody asks."""

    def __init__(self, fields: dict[str, _Field]):
        self._fields = fields

    def __get__(self, one: object, cls: Any) -> Any:
        import dataclasses

        standard: list[Any] = []
        for name, field in self._fields.items():
            given: dict[str, Any] = {"compare": field.compare}
            if field.make is not None:
                given["default_factory"] = field.make
            elif field.default is not ...:
                given["default"] = field.default
            standard.append((name, cls.__annotations__[name], dataclasses.field(**given)))
        made: Any = dataclasses.make_dataclass(cls.__name__, standard)
        cls.__dataclass_fields__ = made.__dataclass_fields__
        return cls.__dataclass_fields__
