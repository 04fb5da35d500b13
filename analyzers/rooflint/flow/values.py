"""What a name can stand for while a file is followed without being run.

A `Value` is the tuple of its alternatives: after a branch, a name stands for what either side
gave it. Most alternatives are plain; containers, objects, functions and classes have identity,
as they do in Python.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Container
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from rooflint.plain import field, plain, replace
from rooflint.source import Block

Place = Literal["gpu", "cpu", "unknown"]
Kind = Literal["bool", "int", "float"]

_MOST_ALTERNATIVES = 8
_MOST_CONSTANTS = 4
_MOST_KNOWN_CONSTANTS = 4096
_DEEPEST_TUPLE = 5


if TYPE_CHECKING:
    from rooflint.flow.facts import Loop


class Site(NamedTuple):
    """A node and the block whose lines it counts."""

    block: Block
    node: ast.expr | ast.stmt

    @property
    def text(self) -> str:
        return self.block.segment(self.node)


@plain
class Unknown:
    """Could be anything."""

    is_item: bool = False
    """It comes out of a loop over something unknown, as the batches of a loader do."""


@plain
class Const:
    """A literal: string, number, boolean, None."""

    value: Any
    type: str


@plain
class Num:
    """A Python number (or boolean) in host memory."""

    seldom: str | None = None
    """How often it is true, if not on every step of a loop: of a comparison, or a flag."""
    seldom_not: str | None = None
    """How often it is false, or, of a remainder, how often it is a certain number."""


@plain
class Text:
    """A Python string."""


@plain
class Array:
    """A NumPy array or scalar: host memory."""


@plain
class Tensor:
    """A tensor: where it lives, and what of it decides whether an operation waits."""

    place: Place
    sure: bool = True
    pinned: bool = False
    kind: Kind | None = None
    ndim: int | None = None
    grad: bool = False
    masked: bool = False
    """Its backward pass waits: a mask read it somewhere on the way."""
    since: Site | None = field(default=None, compare=False)
    """Where it got to the GPU."""
    arriving: int = 0
    """The copy to the host, by identity, that nobody waited for when it was started."""


@plain
class Opaque:
    """Something of unknown shape (a model, its output, a batch) that lives on the GPU."""

    sure: bool = True
    vague: bool = False
    """It may as well be something on the host that was made from it."""
    since: Site | None = field(default=None, compare=False)


@plain
class DeviceIs:
    """A `torch.device` or what stands for one."""

    place: Place


@plain
class Ref:
    """Something imported, by its full name: `torch.nn.functional.relu`."""

    path: str


@plain
class Imported:
    """A name of another file of the program, not yet looked up."""

    path: str
    """The other file, or the folder of a package without one."""
    name: str
    ref: str
    """What it is called if the other file does not know it."""


@plain
class Module:
    """Another file of the program, or the folder of a package, as its importers see it."""

    path: str
    name: str


@plain
class TupleOf:
    items: tuple[Value, ...]
    names: tuple[str, ...] = ()


@plain
class Items:
    """Something to iterate over, all of whose elements look alike."""

    element: Value
    is_data: bool = False
    """Batches: one pass over it is a pass over a data set."""
    is_prepared: bool = False
    """Batches that Accelerate copies to the GPU as they come."""


@plain
class Clock:
    """A reading of the host's clock, and what the GPU had to do at that moment."""

    site: Site = field(compare=False)
    site_id: int
    at: int
    last_launch: int
    last_wait: int
    wait_is_explicit: bool
    iteration: tuple[int, ...] = ()
    depth: int = 0
    """How many loops it was read in."""
    launched_before: bool = True
    reader: int = 0
    """The function that read it."""
    last_elsewhere: int = 0
    is_taken_off: bool = False
    """It was subtracted from a total, to which the end is added: `total -= now()`."""

    @property
    def is_pending(self) -> bool:
        return self.last_launch > self.last_wait


@plain
class Bound:
    """A function of the file with its `self`."""

    function: Function
    receiver: Atom


@plain
class Method:
    """A method of a library's object, not yet called."""

    receiver: Atom
    name: str


@plain
class Generator:
    """A generator that has not run yet."""

    function: Function
    receiver: Atom | None
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@plain
class Partial:
    """`functools.partial(function, ...)`."""

    function: Value
    arguments: tuple[Value, ...]
    keywords: tuple[tuple[str, Value], ...]


@plain
class Super:
    """`super()` of a class, seen from an object."""

    owner: Class
    receiver: Atom


class Frame:
    """The variables of one run of a function, a class body or the module."""

    __slots__ = (
        "asked_by",
        "block",
        "function",
        "later",
        "names_elsewhere",
        "on_yield",
        "parent",
        "returned",
        "vars",
    )

    def __init__(self, block: Block, parent: Frame | None, function: Function | None = None):
        self.block = block
        self.parent = parent
        self.function = function
        self.vars: dict[str, Value] = {}
        self.names_elsewhere: dict[str, Frame] = {}
        self.returned: Value = ()
        self.on_yield: Any = None
        self.asked_by: tuple[int, Loop] | None = None
        """Of a generator: the loop that goes over it, and where it is in the path."""
        self.later: Callable[[str], Value | None] | None = None
        """Of another file's module: follows what a name rests on when it is asked for."""


class Function:
    """A `def` or `lambda` together with the frame it was defined in."""

    __slots__ = (
        "block",
        "born",
        "defaults",
        "frame",
        "is_context",
        "is_elsewhere",
        "is_generator",
        "keeps",
        "name",
        "no_grad",
        "node",
        "owner",
        "role",
    )

    def __init__(
        self,
        node: ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda,
        frame: Frame,
        block: Block,
        owner: Class | None,
    ):
        self.born = 0
        self.node = node
        self.frame = frame
        self.block = block
        self.owner = owner
        self.name: str = "lambda" if isinstance(node, ast.Lambda) else node.name
        self.role: Literal["plain", "static", "class", "property"] = "plain"
        self.defaults: dict[str, Value] = {}
        self.no_grad = False
        self.is_context = False
        self.is_elsewhere = False
        """It is of another file than the one that is followed."""
        self.is_generator = False
        self.keeps = False
        """What it returned is kept, and returned again for the same arguments."""


class Class:
    """A class of the file."""

    __slots__ = (
        "attributes",
        "bases",
        "block",
        "born",
        "fields",
        "is_record",
        "later",
        "make",
        "name",
        "node",
    )

    def __init__(self, node: ast.ClassDef, block: Block, bases: tuple[Atom, ...]):
        self.born = 0
        self.node = node
        self.block = block
        self.name = node.name
        self.bases = bases
        self.attributes: dict[str, Value] = {}
        self.later: Container[str] = ()
        """Of another file's class: names whose statements are followed when they are asked for."""
        self.make: Callable[[str], None] | None = None
        self.fields: list[str] = []
        self.is_record = False

    def lineage(self) -> list[Class]:
        """The class and its bases in the file, nearest first."""
        if not any(base.__class__ is Class for base in self.bases):
            return [self]
        found: list[Class] = []
        waiting: list[Class] = [self]
        while waiting and len(found) < 20:
            one = waiting.pop(0)
            if one not in found:
                found.append(one)
                waiting += [b for b in one.bases if isinstance(b, Class)]
        return found

    def library_bases(self) -> list[str]:
        return [b.path for c in self.lineage() for b in c.bases if isinstance(b, Ref)]

    def find(self, name: str) -> Value | None:
        """What an attribute of it or of its bases is."""
        found = self.own(name)
        if found is None:
            for one in self.lineage()[1:]:
                found = one.own(name)
                if found is not None:
                    break
        return found

    def own(self, name: str) -> Value | None:
        """The same of it alone."""
        found = self.attributes.get(name)
        if found is None and self.make is not None:
            bound = name.removesuffix(".setter")  # It stands beside its property.
            if bound in self.later and bound not in self.attributes:
                self.make(bound)
                found = self.attributes.get(name)
        return found


class Instance:
    """An object of a class of the file or of a library."""

    __slots__ = (
        "attributes",
        "born",
        "cls",
        "facts",
        "is_module",
        "path",
        "place",
        "since",
        "sure",
    )

    def __init__(self, cls: Class | None, path: str, is_module: bool):
        self.born = 0
        self.cls = cls
        self.path = path
        self.is_module = is_module
        self.place: Place = "cpu"
        self.sure = True
        self.since: Site | None = None
        self.attributes: dict[str, Value] = {}
        self.facts: dict[str, Any] = {}
        """What of its construction matters: keyword constants, hooks, the wrapped object."""


class ListOf:
    """A list, set or deque: its elements one by one while few, or what they have in common."""

    __slots__ = ("born", "element", "items")

    def __init__(self) -> None:
        self.born = 0
        self.items: list[Value] | None = []
        self.element: Value = ()


class DictOf:
    """A dict: the values of known keys, and what the others have in common."""

    __slots__ = ("born", "keys", "known", "other")

    def __init__(self) -> None:
        self.born = 0
        self.known: dict[Any, Value] = {}
        self.keys: Value = ()
        self.other: Value = ()


Atom = (
    Unknown
    | Const
    | Num
    | Text
    | Array
    | Tensor
    | Opaque
    | DeviceIs
    | Ref
    | Imported
    | Module
    | TupleOf
    | Items
    | Clock
    | Bound
    | Method
    | Generator
    | Partial
    | Super
    | Function
    | Class
    | Instance
    | ListOf
    | DictOf
)
Value = tuple[Atom, ...]

UNKNOWN: Value = (Unknown(),)
NUMBER: Value = (Num(),)
TEXT: Value = (Text(),)
NONE: Value = (Const(None, "NoneType"),)
TRUE: Value = (Const(True, "bool"),)
FALSE: Value = (Const(False, "bool"),)


@lru_cache(_MOST_KNOWN_CONSTANTS, typed=True)
def constant(value: object) -> Value:
    return (Const(value, type(value).__name__),)


def join(first: Value, second: Value) -> Value:
    """Either of two values."""
    if first is second or not second or first == second:
        return first
    if not first:
        return second
    merged = list(first)
    for atom in second:
        _add(merged, atom)
    if len(merged) > _MOST_ALTERNATIVES:
        gpu = [a for a in merged if isinstance(a, Tensor) and a.place == "gpu"]
        return (Unknown(), *(replace(a, sure=False) for a in gpu[:1]))
    return tuple(merged)


def join_all(values: list[Value] | tuple[Value, ...]) -> Value:
    if len(values) == 1:
        return values[0]
    joined: Value = ()
    for value in values:
        joined = join(joined, value)
    return joined


def _add(merged: list[Atom], atom: Atom) -> None:
    if atom in merged:
        return
    for i, other in enumerate(merged):
        if isinstance(atom, Tensor) and isinstance(other, Tensor) and atom.place == other.place:
            merged[i] = Tensor(
                atom.place,
                atom.sure and other.sure,
                atom.pinned and other.pinned,
                atom.kind if atom.kind == other.kind else None,
                atom.ndim if atom.ndim == other.ndim else None,
                atom.grad or other.grad,
                atom.masked or other.masked,
                other.since or atom.since,
                atom.arriving if atom.arriving == other.arriving else 0,
            )
            return
        if isinstance(atom, Opaque) and isinstance(other, Opaque):
            merged[i] = Opaque(
                atom.sure and other.sure, atom.vague or other.vague, other.since or atom.since
            )
            return
        if isinstance(atom, Clock) and isinstance(other, Clock) and atom.site_id == other.site_id:
            merged[i] = atom if atom.at > other.at else other
            return
        if isinstance(atom, Items) and isinstance(other, Items):
            merged[i] = Items(
                join(other.element, atom.element),
                atom.is_data or other.is_data,
                atom.is_prepared or other.is_prepared,
            )
            return
        if (
            isinstance(atom, TupleOf)
            and isinstance(other, TupleOf)
            and len(atom.items) == len(other.items)
        ):
            merged[i] = TupleOf(
                tuple(join(a, b) for a, b in zip(other.items, atom.items, strict=True)),
                atom.names,
            )
            return
    if isinstance(atom, Const):
        same = [a for a in merged if isinstance(a, Const) and a.type == atom.type]
        if len(same) >= _MOST_CONSTANTS and atom.type in ("int", "float", "str"):
            for a in same:
                merged.remove(a)
            wide: Atom = Text() if atom.type == "str" else Num()
            if wide not in merged:
                merged.append(wide)
            return
    merged.append(atom)


def depth(value: Value) -> int:
    """How deep tuples nest in a value; kept small so that loops come to rest."""
    deepest = 0
    for atom in value:
        if isinstance(atom, TupleOf):
            deepest = max(deepest, 1 + max((depth(i) for i in atom.items), default=0))
        elif isinstance(atom, Items):
            deepest = max(deepest, 1 + depth(atom.element))
    return deepest


def tuple_of(items: list[Value] | tuple[Value, ...], names: tuple[str, ...] = ()) -> Value:
    value: Value = (TupleOf(tuple(items), names),)
    return value if depth(value) <= _DEEPEST_TUPLE else UNKNOWN


def items_of(element: Value, is_data: bool = False, is_prepared: bool = False) -> Value:
    value: Value = (Items(element, is_data, is_prepared),)
    return value if depth(value) <= _DEEPEST_TUPLE else UNKNOWN


def looped(element: Value) -> Value:
    """What a loop over something binds: what is unknown of it may be a batch."""
    result: list[Value] = []
    for atom in element:
        if isinstance(atom, Unknown):
            result.append((Unknown(True),))
        elif isinstance(atom, TupleOf):
            result.append(tuple_of([looped(i) for i in atom.items], atom.names))
        else:
            result.append((atom,))
    return join_all(result)


def is_text(atom: Atom) -> bool:
    """Whether it is a string, known or not."""
    return isinstance(atom, Text) or (isinstance(atom, Const) and atom.type == "str")


def string_of(value: Value) -> str | None:
    """The string that a value certainly is."""
    if len(value) == 1 and isinstance(value[0], Const) and value[0].type == "str":
        return value[0].value
    return None


def gpu_atoms(value: Value) -> list[Tensor | Opaque]:
    """The alternatives that live on the GPU."""
    return [
        a for a in value if (isinstance(a, Tensor) and a.place == "gpu") or isinstance(a, Opaque)
    ]
