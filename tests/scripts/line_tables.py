"""Prints the line tables of some modules, and how this Python reads them."""

import dis
import importlib.util
import json
import sys
from types import CodeType


def codes_in(code):
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from codes_in(constant)


def runs_of(code):
    if hasattr(code, "co_lines"):
        return list(code.co_lines())
    starts = [*dis.findlinestarts(code), (len(code.co_code), 0)]
    return [(start, end, line) for (start, line), (end, _) in zip(starts, starts[1:])]


found = []
for name in ("argparse", "dataclasses", "asyncio.base_events"):
    path = importlib.util.find_spec(name).origin
    with open(path, encoding="utf-8") as file:
        module = compile(file.read(), path, "exec")
    for code in codes_in(module):
        table = code.co_linetable if hasattr(code, "co_linetable") else code.co_lnotab
        found.append((code.co_firstlineno, table.hex(), runs_of(code)))
print(json.dumps([list(sys.version_info[:2]), found]))
