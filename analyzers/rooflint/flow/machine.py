"""What there is while a file is followed: objects, the path to here, the GPU's queue, findings."""

from __future__ import annotations

import ast
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rooflint.flow.facts import TENSOR_WORK, Loop, Path, Seen, Stop, Timing, Wait
from rooflint.flow.values import (
    UNKNOWN,
    Array,
    Class,
    Clock,
    Const,
    DictOf,
    Frame,
    Function,
    Instance,
    ListOf,
    Opaque,
    Site,
    Tensor,
    TupleOf,
    Unknown,
    Value,
    join,
)
from rooflint.plain import changing, field, replace
from rooflint.source import Block

if TYPE_CHECKING:
    from threading import Event

_Made = TypeVar("_Made", Function, Class, Instance, ListOf, DictOf)
_ONLY_OF_TENSORS = frozenset(("item", "tolist", "cpu", "copy"))
"""Nothing but a tensor could be asked for these."""
MOST_STATEMENTS = 80_000
"""Statements and calls that are followed in one file."""
MOST_REPEATED = 200_000
"""Waits of functions that are found once more, since the functions are called once more."""
MOST_STATEMENTS_UNASKED = 4_000
ENOUGH_STATEMENTS, ENOUGH_AT_ONCE = 1_200, 300
"""After which what nothing calls follows no more functions: in the end, and right after an edit."""
MOST_STATEMENTS_ELSEWHERE, MOST_STATEMENTS_ASIDE = 20_000, 300
"""In other files: for a program, and for what nothing calls."""
_MOST_USED = 500
"""Functions and names; with more of them something rests on everything."""


class OutOfBudget(Exception):
    """The file is too entangled to be followed to its end."""


class Cancelled(Exception):
    """What was being found out is no longer asked for."""


@changing
class Call:
    """A call with its arguments followed."""

    node: ast.expr | ast.stmt
    frame: Frame
    arguments: list[Value]
    keywords: dict[str, Value]
    nodes: Sequence[ast.expr] = ()
    starred: bool = False

    def keyword_node(self, name: str) -> ast.expr | None:
        """The expression given to a keyword."""
        keywords = self.node.keywords if isinstance(self.node, ast.Call) else []
        return next((k.value for k in keywords if k.arg == name), None)

    def argument(self, position: int, *names: str) -> Value | None:
        """The argument at a position or by one of its names."""
        for name in names:
            if name in self.keywords:
                return self.keywords[name]
        if 0 <= position < len(self.arguments):
            return self.arguments[position]
        return None


@changing
class Uses:
    """What of a file something rests on: if that changes, it is to be followed again."""

    blocks: set[Block] = field(default_factory=set[Block])
    """The functions that were entered."""
    names: set[str] = field(default_factory=set[str])
    """The names of the module that were read."""
    binds: set[str] = field(default_factory=set[str])
    """Those that were given a value."""
    are_all: bool = False
    """Too many to be told one by one."""

    def add(self, other: Uses) -> None:
        self.binds |= other.binds
        self.are_all = self.are_all or other.are_all
        if not self.are_all:
            self.blocks |= other.blocks
            self.names |= other.names
            self.are_all = len(self.blocks) + len(self.names) > _MOST_USED
        if self.are_all:
            self.blocks.clear()
            self.names.clear()

    def rests_on(self, changed: Uses) -> bool:
        """Whether anything of it has changed."""
        return self.are_all or not (
            self.blocks.isdisjoint(changed.blocks) and self.names.isdisjoint(changed.names)
        )


@changing
class Found:
    """What following a piece of a file finds."""

    uses: Uses = field(default_factory=Uses)
    waits: dict[tuple[int, str], Seen] = field(default_factory=dict[tuple[int, str], Seen])
    timings: dict[tuple[int, str], Timing] = field(default_factory=dict[tuple[int, str], Timing])
    timed_syncs: set[int] = field(default_factory=set[int])
    """Synchronize calls right after which the clock is read."""
    called: dict[int, Function] = field(default_factory=dict[int, Function])
    """The functions that were called, by the identity of their nodes."""
    steps: int = 0
    """Statements and calls that were followed for it."""
    stops: tuple[Stop, ...] | None = None
    """Its waits with how often they happen, once that was asked for."""
    elsewhere: tuple[Function, ...] = ()
    """The functions of other files among those called, once that was asked for."""
    is_silent: bool = False
    """Nothing was found in it, as far as that was asked for."""


@changing
class Trace:
    """What one run of a function did, so that a like call need not run it again."""

    base: int
    waits: dict[tuple[int, str], list[Wait]]
    work: dict[Path, float]
    outer: Trace | None
    """Of the run that it is part of, until its end."""
    uses: Uses = field(default_factory=Uses)
    launches: bool = False
    waited: bool = False
    used_clock: bool = False
    ran_elsewhere: bool = False
    sent: set[int] = field(default_factory=set[int])
    """Copies to the host that it started and did not wait for."""

    def end(self) -> Trace | None:
        """All that it did, the run did that it is part of; that one's."""
        outer, self.outer = self.outer, None
        if outer is None:
            return None
        for key, waits in self.waits.items():
            outer.waits.setdefault(key, []).extend(waits)
        for path, rank in self.work.items():
            if outer.work.get(path, 0.0) < rank:
                outer.work[path] = rank
        if self.waited:
            outer.sent.clear()
        outer.sent |= self.sent
        outer.launches = outer.launches or self.launches
        outer.waited = outer.waited or self.waited
        outer.used_clock = outer.used_clock or self.used_clock
        outer.ran_elsewhere = outer.ran_elsewhere or self.ran_elsewhere
        return outer


class Machine:
    """The state of the interpretation."""

    def __init__(self) -> None:
        self.found = Found()
        self.uses = self.found.uses
        """Of the function that runs."""
        self.path: Path = ()
        self.loops: dict[int, Loop] = {}
        self.heap: dict[tuple[Any, ...], Any] = {}
        self.tick = 0
        """Counts objects made and functions entered, so that one can tell older from younger."""
        self.writes: list[int] = []
        """For each change of an object, when that object was made (globals: 0)."""
        self.at = 0
        self.last_launch = 0
        self.last_wait = 0
        self.last_inner_wait: dict[int, int] = {}
        """By depth of loops: when the host last waited at that depth."""
        self.last_inner_launch: dict[int, int] = {}
        self.last_elsewhere = 0
        """When a function of another file, which may have waited, last ran."""
        self.sent: dict[int, int] = {}
        """When each copy to the host was queued that did not wait for its end."""
        self.wait_is_explicit = False
        self.last_sync: int | None = None
        self.steps = self.repeated = 0
        self.limit = MOST_STATEMENTS
        self.cancelled: Event | None = None
        """Set by another thread: the next statement is not followed."""
        self.enough = MOST_STATEMENTS
        """After so many statements and calls, what nothing calls follows no more functions."""
        self.steps_elsewhere = 0
        self.elsewhere_since: int | None = None
        self.unasked = False
        """Whether what is followed now is called by nothing in the file."""
        self.samples: dict[int, Value] = {}
        """An object of each class, for what nothing in the file makes."""
        self.running: list[Function] = []
        self.call_sites: tuple[int, ...] = ()
        self.branches = 0
        """Unknown conditions around the statement; writes to objects are then 'may'."""
        self.without_grad = 0
        self.default_place: Any = "cpu"
        self.validates = True
        self.texts: dict[str, list[ast.stmt]] = {}
        """Statements that the program holds as text; kept, since nodes go by their identity."""
        self.compiled: set[int] = set()
        """The functions, by identity of their node, that `torch.compile` was given."""
        self.switches: dict[str, Site] = {}
        """What slows every step, and where it was turned on."""
        self.uses_gpu = False
        self.packs_unsorted = False
        """Whether sequences were packed on the GPU in an order of their own."""
        self.log_levels: dict[str, int] = {}
        """What each logger shows, by name; the root's is empty."""
        """Whether messages of level INFO are shown."""
        self.trace: Trace | None = None
        """Of the function that runs."""
        self.before_modules: list[Value] = []
        self.after_modules: list[Value] = []
        self.after_gradients: list[tuple[Value, list[Value]]] = []
        """Hooks of the backward pass, and what they are given."""
        self.iterations: tuple[int, ...] = ()
        self.passing: dict[int, Loop] = {}
        """Calls that pass elements on to the loop that goes over them, by identity."""

    # --- the GPU's queue

    def work(self, rank: float) -> None:
        """The host queues work of this rank, on the GPU if the program uses one."""
        if rank == TENSOR_WORK:
            self.uses_gpu = True
        elif not self.uses_gpu:
            self.mark_work(rank, self.path)
            return
        self.at += 1
        self.last_launch = self.at
        self.last_inner_launch[self.loop_depth()] = self.at
        self.last_sync = None
        if self.trace is not None:
            self.trace.launches = True
        self.mark_work(rank, self.path)
        if self.switches:
            self.slowed_by("launch-blocking")
            self.slowed_by("profiler")

    def slowed_by(self, switch: str, at: Site | None = None) -> None:
        """Something here is slower, if a switch is on."""
        site = self.switches.get(switch)
        if site is not None:
            self.record(Wait(switch, site, None, True, at, "", self.path))

    def mark_work(self, rank: float, path: Path) -> None:
        trace = self.trace
        if trace is not None and trace.work.get(path, 0.0) < rank:
            trace.work[path] = rank
        inner, within_pass = True, False
        for item in reversed(path):
            if isinstance(item, Loop):
                item.holds_passes = item.holds_passes or within_pass
                within_pass = within_pass or item.is_data or item.is_pass
                if inner:
                    item.own = max(item.own, rank)
                    inner = item.transparent
                else:
                    item.nested = max(item.nested, rank)

    def waited(self, *, explicit: bool = False) -> None:
        self.at += 1
        self.last_wait = self.at
        self.wait_is_explicit = explicit
        self.last_inner_wait[self.loop_depth()] = self.at
        if self.trace is not None:
            self.trace.waited = True
            self.trace.sent.clear()

    def send(self, node: ast.AST) -> None:
        """A copy to the host is queued."""
        self.at += 1
        self.sent[id(node)] = self.at
        if self.trace is not None:
            self.trace.sent.add(id(node))

    def is_on_its_way(self, copy: int) -> bool:
        """Whether the host has not waited for the GPU since it queued a copy."""
        return self.sent.get(copy, 0) > self.last_wait

    def may_have_arrived(self, copy: int) -> bool:
        """Whether a function of another file, which may have waited, ran since."""
        return self.last_elsewhere > self.sent.get(copy, 0)

    def ran_elsewhere(self) -> None:
        """A function of another file has run."""
        self.at += 1
        self.last_elsewhere = self.at
        if self.trace is not None:
            self.trace.ran_elsewhere = True

    @property
    def is_pending(self) -> bool:
        """Whether the GPU may still have work to do."""
        return self.last_launch > self.last_wait

    def loop_depth(self) -> int:
        return [item.__class__ for item in self.path].count(Loop)

    def record(self, wait: Wait) -> None:
        key = (id(wait.site.node), wait.operation)
        self.found.waits.setdefault(key, Seen()).add(wait)
        if self.trace is not None:
            self.trace.waits.setdefault(key, []).append(wait)

    def wait(
        self,
        operation: str,
        node: ast.expr | ast.stmt,
        frame: Frame,
        value: Value,
        *,
        subject: ast.expr | None = None,
        reason: str = "",
        detail: str = "",
        sure: bool = True,
        host: bool = True,
    ) -> bool:
        """The host waits for `value` if that is on the GPU; whether it may be."""
        candidates: list[Tensor | Opaque] = []
        for atom in value:
            if isinstance(atom, Opaque) or (isinstance(atom, Tensor) and atom.place != "cpu"):
                candidates.append(atom)
            elif (isinstance(atom, Tensor) and atom.place == "cpu") or isinstance(
                atom, (Unknown, Array)
            ):
                sure = sure and not host
        if not candidates:
            return False
        first = candidates[0]
        on_gpu = [a for a in candidates if isinstance(a, Opaque) or a.place == "gpu"]
        decided = len(on_gpu) == len(candidates) and all(a.sure for a in on_gpu)
        if operation not in _ONLY_OF_TENSORS:
            sure = sure and not any(isinstance(a, Opaque) and a.vague for a in on_gpu)
        self.record(
            Wait(
                operation,
                Site(frame.block, node),
                Site(frame.block, subject) if subject is not None else None,
                sure and decided,
                first.since,
                reason,
                self.path,
                detail,
                not decided,
                sure,
            )
        )
        self.waited()
        return True

    def begin(self) -> Found:
        """Start a piece of the file."""
        self.found = Found()
        self.uses = self.found.uses
        self.loops = {}
        return self.found

    def settings(self) -> tuple[Any, ...]:
        """What the program has set for all that runs after it."""
        return (
            self.default_place,
            self.validates,
            dict(self.switches),
            self.uses_gpu,
            self.packs_unsorted,
            dict(self.log_levels),
            list(self.before_modules),
            list(self.after_modules),
            list(self.after_gradients),
        )

    def set(self, settings: tuple[Any, ...]) -> None:
        """Take settings of before."""
        (
            self.default_place,
            self.validates,
            switches,
            self.uses_gpu,
            self.packs_unsorted,
            log_levels,
            before_modules,
            after_modules,
            after_gradients,
        ) = settings
        self.log_levels = dict(log_levels)
        self.before_modules, self.after_modules = list(before_modules), list(after_modules)
        self.after_gradients, self.switches = list(after_gradients), dict(switches)

    def begin_again(self) -> None:
        """Be where the program starts, with all statements ahead that may be followed."""
        self.start_aside()
        self.steps = self.steps_elsewhere = self.repeated = 0
        self.limit = MOST_STATEMENTS
        self.running.clear()
        self.elsewhere_since = None
        self.unasked, self.cancelled = False, None

    def replay(self, trace: Trace, prefix: Path) -> None:
        """The effects of a run that is not repeated."""
        self.uses.add(trace.uses)
        self.repeated += sum(map(len, trace.waits.values()))
        if self.repeated > MOST_REPEATED:
            raise OutOfBudget
        for waits in trace.waits.values():
            for wait in waits:
                self.record(replace(wait, path=prefix + wait.path))
        for path, rank in trace.work.items():
            self.mark_work(rank, prefix + path)
        if trace.launches:
            self.at += 1
            self.last_launch = self.at
            self.last_inner_launch[self.loop_depth()] = self.at
            if self.trace is not None:
                self.trace.launches = True
        if trace.waited:
            self.waited()
        if trace.ran_elsewhere:
            self.ran_elsewhere()
        for copy in trace.sent:
            self.at += 1
            self.sent[copy] = self.at
            if self.trace is not None:
                self.trace.sent.add(copy)

    def synchronized(self, node: ast.expr | ast.stmt) -> None:
        """The host has waited for all of the GPU's work because it was told to."""
        self.wait_is_explicit = True
        self.last_sync = id(node)
        self.uses_clock()

    def uses_clock(self) -> None:
        """What runs tells the time, so that no other run is like it."""
        if self.trace is not None:
            self.trace.used_clock = True

    def read_clock(self, node: ast.expr, frame: Frame) -> Value:
        self.uses_clock()
        self.at += 1
        if self.last_sync is not None:
            self.found.timed_syncs.add(self.last_sync)
        return (
            Clock(
                Site(frame.block, node),
                id(node),
                self.at,
                self.last_launch,
                self.last_wait,
                self.wait_is_explicit,
                self.iterations,
                self.loop_depth(),
                self.last_launch > 0,
                id(frame.function),
                self.last_elsewhere,
            ),
        )

    def enter_elsewhere(self) -> bool:
        """A function of another file begins to run; whether none did before."""
        if self.elsewhere_since is not None:
            return False
        self.elsewhere_since = self.steps
        return True

    def leave_elsewhere(self) -> None:
        """The function that was entered first has ended."""
        self.steps_elsewhere = self.spent_elsewhere()
        self.elsewhere_since = None

    def spent_elsewhere(self) -> int:
        """Statements and calls that were followed in other files."""
        since = self.elsewhere_since
        return self.steps_elsewhere + (self.steps - since if since is not None else 0)

    def is_spent_elsewhere(self, aside: bool) -> bool:
        """Whether no more of other files is to be followed. `aside`: for what nothing calls; else a
        call takes half of what is left at most, so that something is left for those after it."""
        if aside:
            return self.spent_elsewhere() > MOST_STATEMENTS_ASIDE
        left, since = MOST_STATEMENTS_ELSEWHERE - self.steps_elsewhere, self.elsewhere_since
        return left <= 0 or (since is not None and self.steps - since > left // 2)

    # --- paths and objects

    def loop(self, node: ast.AST, make: Callable[[], Loop]) -> Loop:
        found = self.loops.get(id(node))
        if found is None:
            found = self.loops[id(node)] = make()
        return found

    def changed_since(self, write: int, tick: int) -> bool:
        """Whether something that is older than `tick` has changed since that write."""
        return write < len(self.writes) and any(born <= tick for born in self.writes[write:])

    def hook_backward(self, hook: Value | None, given: list[Value]) -> None:
        """A function to be called on each backward pass."""
        if hook is None or (hook, given) in self.after_gradients:
            return
        if len(self.after_gradients) < 6:
            self.after_gradients.append((hook, given))

    def place(self) -> tuple[Any, ...]:
        """Where in the program one is, to come back to after a fault."""
        return (
            self.path,
            self.branches,
            self.call_sites,
            self.without_grad,
            len(self.running),
            self.trace,
            self.iterations,
            self.default_place,
            self.uses,
        )

    def start_aside(self) -> None:
        """Follow something that does not depend on where in the program one is."""
        self.path, self.branches, self.call_sites, self.without_grad = (), 0, (), 0
        self.trace, self.iterations = None, ()

    def return_to(self, place: tuple[Any, ...]) -> None:
        """Come back to a place."""
        inner = self.trace
        (
            self.path,
            self.branches,
            self.call_sites,
            self.without_grad,
            depth,
            self.trace,
            self.iterations,
            self.default_place,
            self.uses,
        ) = place
        while inner is not None and inner is not self.trace:
            inner = inner.end()
        del self.running[depth:]
        if not any(function.is_elsewhere for function in self.running):
            self.elsewhere_since = None

    @property
    def is_spent(self) -> bool:
        """Whether no more of the file is to be followed."""
        return self.steps > MOST_STATEMENTS or self.repeated > MOST_REPEATED

    def count(self) -> None:
        self.steps += 1
        if self.steps > self.limit:
            raise OutOfBudget
        if self.cancelled is not None and self.cancelled.is_set():
            raise Cancelled

    def let_go(self) -> None:
        """Take the objects apart."""
        for one in self.heap.values():
            if isinstance(one, Function):
                one.frame.vars.clear()
            elif isinstance(one, Class):
                one.attributes.clear()
                one.make = None
            elif isinstance(one, Instance):
                one.attributes.clear()
                one.facts.clear()
            elif isinstance(one, ListOf):
                one.items, one.element = None, ()
            elif isinstance(one, DictOf):
                one.known.clear()
                one.keys = one.other = ()
        self.heap.clear()

    def make(self, node: ast.AST, what: str, factory: Callable[[], _Made]) -> _Made:
        """The object made at a place of the source, the same one each time."""
        key = (id(node), what, self.call_sites[-3:])
        found = self.heap.get(key)
        if found is None:
            found = self.heap[key] = factory()
            self.tick += 1
            found.born = self.tick
        return found

    def list_at(self, node: ast.AST, what: str = "list") -> ListOf:
        return self.make(node, what, ListOf)

    def dict_at(self, node: ast.AST, what: str = "dict") -> DictOf:
        return self.make(node, what, DictOf)

    def write_attribute(self, instance: Instance, name: str, value: Value) -> None:
        old = instance.attributes.get(name)
        new = value if old is None or not self.branches else join(old, value)
        if old != new:
            instance.attributes[name] = new
            self.writes.append(instance.born)

    def append(self, one: ListOf, value: Value) -> None:
        if one.items is not None:
            if self.loop_depth() or len(one.items) >= 16:
                one.element = join(one.element, _joined(one.items))
                one.items = None
                self.writes.append(one.born)
            else:
                one.items = [*one.items, value]
                self.writes.append(one.born)
                return
        new = join(one.element, value)
        if new != one.element:
            one.element = new
            self.writes.append(one.born)

    def append_like(self, one: ListOf, element: Value) -> None:
        """The list holds any number of such elements."""
        if one.items is not None:
            element = join(_joined(one.items), element)
            one.items = None
            self.writes.append(one.born)
        new = join(one.element, element)
        if new != one.element:
            one.element = new
            self.writes.append(one.born)

    def fill(self, one: ListOf, items: list[Value]) -> None:
        """Set the elements of a list just made (again)."""
        if one.items is not None and (not one.items or one.items == items) and not one.element:
            if one.items != items:
                one.items = list(items)
                self.writes.append(one.born)
            return
        if items:
            old = one.element
            one.element = join(join(one.element, _joined(one.items or [])), _joined(items))
            if old != one.element or one.items is not None:
                self.writes.append(one.born)
            one.items = None

    def put(self, one: DictOf, key: Value, value: Value) -> None:
        if len(key) == 1 and isinstance(key[0], Const) and len(one.known) < 40:
            name = key[0].value
            old = one.known.get(name)
            new = value if old is None or not self.branches else join(old, value)
            if old != new:
                one.known[name] = new
                self.writes.append(one.born)
            return
        new = join(one.other, value)
        keys = join(one.keys, key)
        if new != one.other or keys != one.keys:
            one.other, one.keys = new, keys
            self.writes.append(one.born)


def _joined(items: list[Value]) -> Value:
    value: Value = ()
    for item in items:
        value = join(value, item)
    return value


def elements_of_list(one: ListOf) -> Value:
    """What an element of a list may be."""
    return join(one.element, _joined(one.items or [])) or UNKNOWN


def elements_of_dict(one: DictOf) -> Value:
    """What a value of a dict may be."""
    return join(one.other, _joined(list(one.known.values()))) or UNKNOWN


def fixed_items(value: Value) -> list[Value] | None:
    if len(value) != 1:
        return None
    atom = value[0]
    if isinstance(atom, TupleOf):
        return list(atom.items)
    if isinstance(atom, ListOf) and atom.items is not None and not atom.element:
        return list(atom.items)
    if isinstance(atom, Instance) and "children" in atom.facts and atom.cls is None:
        return None if atom.path.endswith("Dict") else children_of(atom)
    return None


def children_of(one: Instance) -> list[Value]:
    """What a container of modules or parameters holds."""
    children: list[Value] = one.facts.get("children", [])
    if one.path.startswith("torch.nn.Param"):
        return [placed(child, one) for child in children]
    return list(children)


def placed(value: Value, one: Instance) -> Value:
    """A module's own tensors live where the module does."""
    return tuple(
        replace(a, place=one.place, sure=one.sure, since=one.since) if isinstance(a, Tensor) else a
        for a in value
    )
