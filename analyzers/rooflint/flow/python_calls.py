"""Functions of Python's builtins and standard library, and some of torch, by name."""

from __future__ import annotations

import ast
from collections.abc import Callable
from typing import TYPE_CHECKING

from rooflint.flow import arrivals, operators, switches, workers
from rooflint.flow import torch_calls as known
from rooflint.flow.compiled import compile_given
from rooflint.flow.containers import compare_in_order, dict_of, list_of
from rooflint.flow.facts import TENSOR_WORK, TRAINING_WORK
from rooflint.flow.loaders import through, yields_prepared
from rooflint.flow.machine import Call, fixed_items
from rooflint.flow.making import from_numpy
from rooflint.flow.places import (
    call_with,
    copy_to_gpu,
    device_of,
    expression_of,
    gpu_tensors_in,
    instance_at,
    is_false,
    shown_tensors,
    tensors_in,
    without_arguments,
)
from rooflint.flow.tensors import run_backward
from rooflint.flow.text import level_of, print_values, text_of
from rooflint.flow.timing import time_repeated
from rooflint.flow.type_checks import has_attribute, hasattr_of, isinstance_of
from rooflint.flow.values import (
    FALSE,
    NONE,
    NUMBER,
    TEXT,
    UNKNOWN,
    Atom,
    Bound,
    Const,
    DeviceIs,
    DictOf,
    Function,
    Generator,
    Instance,
    ListOf,
    Num,
    Opaque,
    Partial,
    Ref,
    Tensor,
    TupleOf,
    Value,
    constant,
    gpu_atoms,
    items_of,
    join,
    join_all,
    tuple_of,
)
from rooflint.plain import replace

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


WRAPPERS = frozenset(
    """torch.nn.DataParallel torch.nn.parallel.DistributedDataParallel torch.compile
    torch.jit.script torch.jit.trace torch.nn.parallel.DataParallel
    torch.distributed.fsdp.FullyShardedDataParallel copy.deepcopy copy.copy
    torch.optim.swa_utils.AveragedModel torch.nn.utils.spectral_norm torch.nn.utils.weight_norm
    torch.nn.utils.parametrizations.spectral_norm torch.autograd.variable.Variable
    functools.lru_cache""".split()
)
"""What gives back what it is given, for all that matters here."""


def convert_to_number(it: Interpreter, value: Value, call: Call, position: int = 0) -> None:
    """A value must become a Python number."""
    node = call.nodes[position] if position < len(call.nodes) else None
    at = call.node
    arrivals.read(it, value, at, call.frame, node)
    if any(isinstance(a, (Tensor, Opaque)) for a in value):
        one = value[0] if len(value) == 1 else None
        kind = one.kind if isinstance(one, Tensor) else None
        it.machine.wait("float", at, call.frame, value, subject=node, detail=kind or "")


def _number(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    convert_to_number(it, value, call)
    for atom in value:
        if isinstance(atom, Instance) and atom.cls is not None:
            method = atom.cls.find("__float__") or atom.cls.find("__int__")
            if method is not None and isinstance(call.node, ast.expr):
                it.call(it.bound(method, atom, call.node, call.frame), without_arguments(call))
    return NUMBER


def _bool(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or FALSE
    convert_to_number(it, value, call)
    return NUMBER


def _round(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    return tuple(a for a in value if isinstance(a, (Tensor, Opaque))) or NUMBER


def _divmod(it: Interpreter, call: Call) -> Value:
    left, right = call.argument(0) or UNKNOWN, call.argument(1) or UNKNOWN
    if len(call.nodes) < 2:
        return UNKNOWN
    parts = (
        operators.binary(it, call.node, op, left, right, call.frame, *call.nodes[:2])
        for op in (ast.FloorDiv(), ast.Mod())
    )
    return tuple_of(list(parts))


def _abs(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or NUMBER
    if gpu_atoms(value):
        it.machine.work(TENSOR_WORK)
    return value


def _range(it: Interpreter, call: Call) -> Value:
    for i, value in enumerate(call.arguments):
        if any(isinstance(a, Tensor) for a in value):
            node = call.nodes[i] if i < len(call.nodes) else None
            it.machine.wait("float", node or call.node, call.frame, value, subject=node)
    return items_of(NUMBER)


def _least(it: Interpreter, call: Call) -> Value:
    """`min` and `max`."""
    if len(call.arguments) == 1 and not call.starred:
        elements = it.elements(call.arguments[0], call.node, call.frame)
    else:
        elements = join_all(call.arguments)
    key = call.keywords.get("key")
    if key is not None:
        elements_key = call_with(it, key, [elements], call)
        compare_in_order(it, elements_key, call)
        return elements
    compare_in_order(it, elements, call)
    return join(elements, call.keywords.get("default", ()))


def _sorted(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    key = call.keywords.get("key")
    compare_in_order(
        it, call_with(it, key, [elements], call) if key is not None else elements, call
    )
    return list_of(it, call, elements, "sorted")


def _some_of(it: Interpreter, call: Call) -> Value:
    """`heapq.nlargest(n, iterable)`."""
    return _sorted(it, replace(call, arguments=call.arguments[1:], nodes=call.nodes[1:]))


def _place_of(it: Interpreter, call: Call) -> Value:
    """`bisect.bisect(a, x)`: compared until the place is found."""
    convert_to_number(it, call.argument(1, "x") or UNKNOWN, call, 1)
    return NUMBER


def _any(it: Interpreter, call: Call) -> Value:
    """`any` and `all` of Python."""
    value = call.argument(0) or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    tensors = tuple(a for a in elements if not isinstance(a, Opaque))
    if any(isinstance(a, Tensor) and a.place != "cpu" for a in tensors):
        it.machine.wait(
            "iterate",
            call.node,
            call.frame,
            tensors,
            subject=call.nodes[0] if call.nodes else None,
            reason="Python looks at the elements one by one",
        )
    return NUMBER


def _sum(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    elements = it.elements(value, call.node, call.frame)
    if gpu_atoms(elements):
        it.machine.work(TENSOR_WORK)
        return tuple(a for a in elements if isinstance(a, (Tensor, Opaque)))
    return elements if any(isinstance(a, Tensor) for a in elements) else NUMBER


def _list(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        made = it.machine.list_at(call.node)
        it.machine.fill(made, [])
        return (made,)
    value = call.arguments[0]
    if len(value) == 1 and isinstance(value[0], ListOf):
        return value

    fixed = fixed_items(value)
    if fixed is not None:
        made = it.machine.list_at(call.node)
        it.machine.fill(made, fixed)
        return (made,)
    return list_of(it, call, it.elements(value, call.node, call.frame), "list")


def _tuple(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return tuple_of([])

    fixed = fixed_items(call.arguments[0])
    if fixed is not None:
        return tuple_of(fixed)
    return items_of(it.elements(call.arguments[0], call.node, call.frame))


def _dict(it: Interpreter, call: Call) -> Value:
    made = it.machine.dict_at(call.node)
    for value in call.arguments:
        for atom in value:
            if isinstance(atom, DictOf):
                for key, inner in atom.known.items():
                    it.machine.put(made, constant(key), inner)
                if atom.other:
                    it.machine.put(made, atom.keys or UNKNOWN, atom.other)
            else:
                pair = it.elements((atom,), call.node, call.frame)
                for one in pair:
                    if isinstance(one, TupleOf) and len(one.items) == 2:
                        it.machine.put(made, one.items[0], one.items[1])
                    else:
                        it.machine.put(made, UNKNOWN, it.elements((one,), call.node, call.frame))
    for name, value in call.keywords.items():
        it.machine.put(made, constant(name) if name != "**" else TEXT, value)
    return (made,)


def _enumerate(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "iterable") or UNKNOWN
    element = it.elements(value, call.node, call.frame)
    return through(tuple_of([NUMBER, element]), value)


def _zip(it: Interpreter, call: Call) -> Value:
    if call.starred and len(call.arguments) == 1:
        # zip(*rows) turns rows into columns.
        row = call.arguments[0]
        columns: list[Value] = []
        for atom in row:
            if isinstance(atom, TupleOf):
                columns = [items_of(i) for i in atom.items]
        if columns:
            return tuple_of(columns)
        return items_of(items_of(it.elements(row, call.node, call.frame)))
    rows = [v[0] for v in call.arguments if len(v) == 1 and isinstance(v[0], TupleOf)]
    widths = {len(row.items) for row in rows}
    if _is_spread(call) and len(rows) == len(call.arguments) and len(widths) == 1:
        return tuple_of(
            [items_of(join_all([r.items[i] for r in rows])) for i in range(widths.pop())]
        )
    parts = [it.elements(v, call.node, call.frame) for v in call.arguments]
    return through(tuple_of(parts), *call.arguments)


def _is_spread(call: Call) -> bool:
    """Whether its only argument is `*rows`."""
    return len(call.nodes) == 1 and isinstance(call.nodes[0], ast.Starred)


def _map(it: Interpreter, call: Call) -> Value:
    if len(call.arguments) < 2:
        return UNKNOWN
    function, *rest = call.arguments

    fixed = fixed_items(rest[0]) if len(rest) == 1 else None
    if fixed is not None and len(fixed) <= 8:
        return tuple_of([_mapped(it, function, [f], call) for f in fixed])
    parts = [it.elements(v, call.node, call.frame) for v in rest]
    return items_of(_mapped(it, function, parts, call))


def _mapped(it: Interpreter, function: Value, parts: list[Value], call: Call) -> Value:

    return it.call(function, Call(call.node, call.frame, parts, {}, call.nodes[1:]))


def _filter(it: Interpreter, call: Call) -> Value:
    if len(call.arguments) < 2:
        return UNKNOWN
    element = it.elements(call.arguments[1], call.node, call.frame)
    tested = element
    if call.arguments[0] != NONE:
        tested = _mapped(it, call.arguments[0], [element], call)
    if gpu_atoms(tested):
        it.tested(tested, expression_of(call), call.frame)
    return items_of(element)


def _vars(it: Interpreter, call: Call) -> Value:
    held = [a for a in call.argument(0) or () if isinstance(a, Instance)]
    return join_all([dict_of(it, one, call.node) for one in held]) or UNKNOWN


def _getattr(it: Interpreter, call: Call) -> Value:
    base = call.argument(0) or UNKNOWN
    default = call.argument(2) or ()
    names = call.argument(1) or ()
    node = call.node
    if not isinstance(node, ast.expr):
        return UNKNOWN
    strings = [str(a.value) for a in names if isinstance(a, Const) and a.type == "str"]
    if strings and len(strings) == len(names):
        results: list[Value] = []
        for name in strings:
            for atom in base:
                held = isinstance(atom, Instance) and atom.cls is not None
                if held and default and has_attribute(atom, name) is None:
                    results.append(default)
                    continue
                results.append(it.attribute((atom,), name, node, call.frame))
        return join_all(results) or UNKNOWN
    # An unknown name: any attribute that the object itself holds.
    held = [v for a in base if isinstance(a, Instance) for v in a.attributes.values()]
    tensors = tuple(t for v in held for t in v if isinstance(t, Tensor))
    gathered = join_all([(t,) for t in tensors])
    return join_all([gathered, default]) if gathered else UNKNOWN


def _setattr(it: Interpreter, call: Call) -> Value:
    given = call.argument(1) or ()
    names = [str(a.value) for a in given if isinstance(a, Const) and a.type == "str"]
    value = call.argument(2) or UNKNOWN
    wraps = len(names) > 1 and any(isinstance(a, (Function, Bound, Partial)) for a in value)
    if len(names) < len(given) or wraps:
        # Which method a wrapper is put around is not told by all of their names.
        names = ["*"]
    for atom in call.argument(0) or ():
        if isinstance(atom, Instance):
            for name in names:
                it.machine.write_attribute(atom, name, value)
    return NONE


def _iter(it: Interpreter, call: Call) -> Value:
    results: list[Value] = []
    for atom in call.argument(0) or UNKNOWN:
        # What has code of its own runs when its next element is asked for.
        method = atom.cls.find("__iter__") if isinstance(atom, Instance) and atom.cls else None
        if isinstance(atom, Generator):
            results.append((atom,))
        elif method is not None and isinstance(call.node, ast.expr):
            bound = it.bound(method, atom, call.node, call.frame)
            results.append(it.call(bound, without_arguments(call)))
        else:
            one: Value = (atom,)
            results.append(through(it.elements(one, call.node, call.frame), one))
    return join_all(results) or UNKNOWN


def _next(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    element = join_all([_next_of(it, atom, call) for atom in value])
    if yields_prepared(value):
        batch: Value = (Tensor("cpu"),)
        copy_to_gpu(it, call.node, call.frame, batch, True, None, "prepared")
    return join(element, call.argument(1) or ())


def _next_of(it: Interpreter, atom: Atom, call: Call) -> Value:
    method = atom.cls.find("__next__") if isinstance(atom, Instance) and atom.cls else None
    if method is not None and isinstance(call.node, ast.expr):
        bound = it.bound(method, atom, call.node, call.frame)
        return it.call(bound, without_arguments(call))
    return it.elements((atom,), call.node, call.frame)


def _reversed(it: Interpreter, call: Call) -> Value:
    return items_of(it.elements(call.argument(0) or UNKNOWN, call.node, call.frame))


def _type(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    classes = [a.cls for a in value if isinstance(a, Instance) and a.cls is not None]
    if classes and len(classes) == len(value):
        return tuple(dict.fromkeys(classes))
    if value and all(isinstance(a, Tensor) for a in value):
        return (Ref("torch.Tensor"),)
    return UNKNOWN


def _device(it: Interpreter, call: Call) -> Value:
    place, sure = device_of(call.argument(0, "type", "device"))
    if place is None:
        return (DeviceIs("unknown"),)
    return (DeviceIs(place if sure else "unknown"),)


def _partial(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return UNKNOWN
    function = call.arguments[0]
    return (Partial(function, tuple(call.arguments[1:]), tuple(call.keywords.items())),)


def _wraps(it: Interpreter, call: Call) -> Value:
    return (Ref("rooflint.identity"),)


def _identity(it: Interpreter, call: Call) -> Value:
    return call.arguments[0] if call.arguments else UNKNOWN


def _deepcopy(it: Interpreter, call: Call) -> Value:
    """A model's copy is moved on its own."""
    made: dict[int, Instance] = {}
    return tuple(_copied(it, atom, call, made) for atom in call.argument(0, "x") or UNKNOWN)


def _copied(it: Interpreter, atom: Atom, call: Call, made: dict[int, Instance]) -> Atom:
    if not isinstance(atom, Instance) or not atom.is_module or len(made) > 100:
        return atom
    if id(atom) in made:
        return made[id(atom)]
    machine = it.machine
    twin = machine.make(
        call.node, f"copy {id(atom)}", lambda: Instance(atom.cls, atom.path, atom.is_module)
    )
    made[id(atom)] = twin
    if twin.place != atom.place:
        machine.writes.append(twin.born)
    twin.place, twin.sure, twin.since = atom.place, atom.sure, atom.since
    twin.facts.update(atom.facts)
    children: list[Value] | None = atom.facts.get("children")
    if children is not None:
        twin.facts["children"] = [
            tuple(_copied(it, a, call, made) for a in child) for child in children
        ]
    for name, value in atom.attributes.items():
        machine.write_attribute(twin, name, tuple(_copied(it, a, call, made) for a in value))
    return twin


def _decorator(it: Interpreter, call: Call) -> Value:
    """`torch.compile(model)` or `@torch.compile(...)`."""
    return call.arguments[0] if call.arguments else (Ref("rooflint.identity"),)


_QUEUES = (
    *("queue." + name for name in ("Queue", "SimpleQueue", "LifoQueue", "PriorityQueue")),
    *(f"{root}.Queue" for root in ("asyncio", "multiprocessing", "torch.multiprocessing")),
)


def _queue(it: Interpreter, call: Call) -> Value:
    return (it.machine.list_at(call.node),)


def _deque(it: Interpreter, call: Call) -> Value:
    made = it.machine.list_at(call.node)
    if call.arguments:
        it.machine.append_like(made, it.elements(call.arguments[0], call.node, call.frame))
    return (made,)


def _defaultdict(it: Interpreter, call: Call) -> Value:
    made = it.machine.dict_at(call.node)
    if call.arguments:
        it.machine.put(made, UNKNOWN, call_with(it, call.arguments[0], [], without_arguments(call)))
    return (made,)


def _timeit(it: Interpreter, call: Call) -> Value:
    """`timeit.timeit(callable)`."""
    time_repeated(it, call.argument(0, "stmt") or UNKNOWN, call)
    return NUMBER


def _timer(it: Interpreter, call: Call) -> Value:
    """`timeit.Timer(callable)`."""
    one = instance_at("timeit.Timer", it, call)
    one.facts["stmt"] = call.argument(0, "stmt") or UNKNOWN
    return (one,)


def _thread(it: Interpreter, call: Call) -> Value:
    """`threading.Thread(target=..., args=...)`: the target runs."""
    given = call.argument(3, "args")
    values = fixed_items(given) if given is not None else None
    call_with(it, call.argument(1, "target") or UNKNOWN, values or [], call)
    return UNKNOWN


def _spawn(it: Interpreter, call: Call) -> Value:
    """`torch.multiprocessing.spawn(fn, args=...)`: fn runs with its rank first."""
    given = call.argument(1, "args")
    values = fixed_items(given) if given is not None else None
    call_with(it, call.argument(0, "fn") or UNKNOWN, [NUMBER, *(values or [])], call)
    return NONE


def _field(it: Interpreter, call: Call) -> Value:
    one = instance_at("dataclasses.field", it, call)
    return (one,)


def field_default(it: Interpreter, default: Value, call: Call) -> Value:
    """The default of a dataclass field."""
    for atom in default:
        if isinstance(atom, Instance) and atom.path == "dataclasses.field":
            keywords: dict[str, Value] = atom.facts.get("keywords", {})
            if "default" in keywords:
                return keywords["default"]
            if "default_factory" in keywords:
                return call_with(it, keywords["default_factory"], [], without_arguments(call))
            return UNKNOWN
    # A setting can be given otherwise: which way a flag points stays open.
    return tuple(Num() if isinstance(a, Const) and a.type == "bool" else a for a in default)


def _set_validation(it: Interpreter, call: Call) -> Value:
    if is_false(call.argument(0, "value")):
        it.machine.validates = False
    return NONE


def _set_default_device(it: Interpreter, call: Call) -> Value:
    place, sure = device_of(call.argument(0, "device"))
    if place is not None and sure:
        it.machine.default_place = place
    return NONE


def _set_default_type(it: Interpreter, call: Call) -> Value:
    paths = {a.path for v in call.arguments for a in v if isinstance(a, Ref)}
    texts = {str(a.value) for v in call.arguments for a in v if isinstance(a, Const)}
    if (paths | texts) & known.GPU_TENSOR_TYPES:
        it.machine.default_place = "gpu"
    return NONE


def _checkpoint(it: Interpreter, call: Call) -> Value:
    if not call.arguments:
        return UNKNOWN
    return it.call(call.arguments[0], replace(call, arguments=call.arguments[1:], keywords={}))


def _autograd_grad(it: Interpreter, call: Call) -> Value:
    _autograd_backward(it, call)
    found = tensors_in(call.argument(1, "inputs"))
    tensors = [t for t in found if isinstance(t, Tensor)]
    return items_of((tensors[0],)) if tensors else items_of((found[0],) if found else UNKNOWN)


def _autograd_backward(it: Interpreter, call: Call) -> Value:
    it.machine.work(TRAINING_WORK)
    for tensor in tensors_in(call.argument(0, "tensors", "outputs")):
        if isinstance(tensor, Tensor):
            run_backward(it, tensor, call)
    return NONE


def _save(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "obj") or UNKNOWN
    arrivals.read(it, value, call.node, call.frame, call.nodes[0] if call.nodes else None)
    tensors = tuple(t for t in gpu_tensors_in(value) if isinstance(t, Tensor))
    if tensors:
        why = "it copies the tensors to the host"
        it.machine.wait("library", call.node, call.frame, tensors, reason=why)
    return NONE


def _basic_config(it: Interpreter, call: Call) -> Value:
    """`logging.basicConfig(level=logging.INFO)`."""
    level = level_of(call.argument(-1, "level"))
    if level is not None:
        it.machine.log_levels[""] = level
    return NONE


def _shown_dumps(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "obj") or UNKNOWN
    arrivals.read(it, value, call.node, call.frame, call.nodes[0] if call.nodes else None)
    held = shown_tensors(value)
    tensors = tuple(a for a in held if isinstance(a, Tensor))
    if tensors:
        it.machine.wait(
            "library", call.node, call.frame, tensors, reason="it copies the tensor to the host"
        )
    return TEXT


def _len(it: Interpreter, call: Call) -> Value:
    for atom in call.argument(0) or ():
        if isinstance(atom, Instance) and atom.cls is not None and isinstance(call.node, ast.expr):
            method = atom.cls.find("__len__")
            if method is not None:
                it.call(it.bound(method, atom, call.node, call.frame), without_arguments(call))
    return NUMBER


def _slice(it: Interpreter, call: Call) -> Value:
    return (TupleOf((), ("slice",)),)


def _random_sample(it: Interpreter, call: Call) -> Value:
    value = call.argument(0, "population") or UNKNOWN
    return list_of(it, call, it.elements(value, call.node, call.frame), "sample")


def _random_choice(it: Interpreter, call: Call) -> Value:
    return it.elements(call.argument(0, "seq") or UNKNOWN, call.node, call.frame)


def _chain(it: Interpreter, call: Call) -> Value:
    parts = [it.elements(v, call.node, call.frame) for v in call.arguments]
    return through(join_all(parts) or UNKNOWN, *call.arguments)


def _through(it: Interpreter, call: Call) -> Value:
    value = call.argument(0) or UNKNOWN
    return through(it.elements(value, call.node, call.frame), value)


def _host_number(it: Interpreter, call: Call) -> Value:
    return NUMBER


def _host_text(it: Interpreter, call: Call) -> Value:
    return TEXT


_Handler = Callable[["Interpreter", Call], Value]


HANDLERS: dict[str, _Handler] = {
    "builtins.print": print_values,
    "builtins.str": text_of,
    "builtins.repr": text_of,
    "builtins.format": text_of,
    "builtins.float": _number,
    "builtins.int": _number,
    "builtins.complex": _number,
    "builtins.bool": _bool,
    "builtins.chr": _number,
    "builtins.bin": _number,
    "builtins.hex": _number,
    "builtins.oct": _number,
    "builtins.bytes": _number,
    "builtins.ascii": text_of,
    "pprint.pformat": text_of,
    "pprint.pprint": print_values,
    "operator.index": _number,
    "operator.truth": _number,
    "operator.not_": _number,
    "numpy.float64": _number,
    "numpy.int64": _host_number,
    "heapq.nlargest": _some_of,
    "heapq.nsmallest": _some_of,
    "bisect.bisect": _place_of,
    "bisect.bisect_left": _place_of,
    "bisect.bisect_right": _place_of,
    "bisect.insort": _place_of,
    "builtins.round": _round,
    "builtins.abs": _abs,
    "builtins.divmod": _divmod,
    "builtins.slice": _slice,
    "builtins.len": _len,
    "builtins.range": _range,
    "builtins.min": _least,
    "builtins.max": _least,
    "builtins.sorted": _sorted,
    "builtins.any": _any,
    "builtins.all": _any,
    "builtins.sum": _sum,
    "builtins.list": _list,
    "builtins.set": _list,
    "builtins.frozenset": _list,
    "builtins.tuple": _tuple,
    "builtins.dict": _dict,
    "builtins.enumerate": _enumerate,
    "builtins.zip": _zip,
    "builtins.map": _map,
    "builtins.filter": _filter,
    "builtins.isinstance": isinstance_of,
    "builtins.hasattr": hasattr_of,
    "builtins.getattr": _getattr,
    "builtins.setattr": _setattr,
    "builtins.vars": _vars,
    "builtins.iter": _iter,
    "builtins.next": _next,
    "builtins.reversed": _reversed,
    "builtins.type": _type,
    "builtins.id": _host_number,
    "builtins.hash": _host_number,
    "builtins.callable": _host_number,
    "builtins.property": _identity,
    "builtins.staticmethod": _identity,
    "builtins.classmethod": _identity,
    "torch.is_tensor": lambda it, call: isinstance_of(
        it, replace(call, arguments=[*call.arguments[:1], (Ref("torch.Tensor"),)])
    ),
    "torch.device": _device,
    "torch.from_numpy": from_numpy,
    "torch.manual_seed": _host_number,
    "torch.get_default_dtype": lambda it, call: UNKNOWN,
    "torch.finfo": lambda it, call: (Ref("torch.finfo()"),),
    "torch.iinfo": lambda it, call: (Ref("torch.iinfo()"),),
    "torch.typename": _host_text,
    "torch.numel": _host_number,
    "torch.is_floating_point": _host_number,
    "torch.get_rng_state": lambda it, call: (Tensor("cpu"),),
    "torch.set_default_device": _set_default_device,
    "torch.set_default_tensor_type": _set_default_type,
    "torch.compile": compile_given,
    "torch.jit.script": _decorator,
    "torch.jit.trace": _decorator,
    "torch.utils.checkpoint.checkpoint": _checkpoint,
    "torch.autograd.grad": _autograd_grad,
    "torch.autograd.backward": _autograd_backward,
    "torch.autograd.set_detect_anomaly": switches.set_anomaly,
    "torch.autograd.anomaly_mode.set_detect_anomaly": switches.set_anomaly,
    "os.environ.setdefault": switches.set_default,
    "torch.save": _save,
    "torch.load": lambda it, call: UNKNOWN,
    "torch.distributions.Distribution.set_default_validate_args": _set_validation,
    "torch.distributions.distribution.Distribution.set_default_validate_args": _set_validation,
    "functools.partial": _partial,
    "functools.reduce": workers.reduce,
    "torch.utils._pytree.tree_map": workers.tree_map,
    "torch.utils.pytree.tree_map": workers.tree_map,
    "dataclasses.replace": workers.replaced,
    "dataclasses.asdict": _vars,
    "functools.wraps": _wraps,
    "functools.lru_cache": _decorator,
    "functools.cache": _identity,
    "rooflint.identity": _identity,
    "copy.deepcopy": _deepcopy,
    "copy.copy": _identity,
    "collections.deque": _deque,
    **dict.fromkeys(_QUEUES, _queue),
    "collections.OrderedDict": _dict,
    "collections.defaultdict": _defaultdict,
    "itertools.chain": _chain,
    "itertools.islice": _through,
    "itertools.cycle": _through,
    "random.sample": _random_sample,
    "random.choice": _random_choice,
    "timeit.timeit": _timeit,
    "timeit.repeat": _timeit,
    "timeit.Timer": _timer,
    "threading.Thread": _thread,
    "torch.multiprocessing.spawn": _spawn,
    "logging.basicConfig": _basic_config,
    "dataclasses.field": _field,
    "json.dumps": _host_text,
    "pickle.dumps": _shown_dumps,
}


HANDLERS.update({w: _decorator for w in WRAPPERS if w not in HANDLERS})
