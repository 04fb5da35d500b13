"""Whom a file imports, by its text; and whether a program could use a GPU at all."""

from __future__ import annotations

import re

from rooflint.flow.program import Program
from rooflint.plain import plain
from rooflint.source import SourceFile

_IMPORT = re.compile(
    r"^[ \t]*(?:from[ \t]+(?=[.\w])(\.*)((?:\w[\w.]*)?)[ \t]+import[ \t]+"
    r"(\((?:[^()#]|#[^\n]*\n)*\)|[^\n#]*)"
    r"|import[ \t]+([^\n#]+))",
    re.MULTILINE,
)
_NAME = re.compile(r"[\w.]+")
_OF_GPUS = re.compile(
    r"torch|\bcuda\b|\.(?:to|cpu)\("
    r"|^[ \t]*(?:import|from)[ \t]+(?:accelerate|lightning|transformers)\b",
    re.MULTILINE,
)
"""One of these stands somewhere in a program whose values live on a GPU."""


@plain
class Imports:
    """What a file's text says of its place among the others."""

    files: frozenset[str]
    """Whom it imports."""
    is_script: bool


@plain
class Reach:
    """A script and what it imports, all the way."""

    files: frozenset[str]
    """The others that were looked at."""
    may_use_gpu: bool
    """Otherwise nothing in it waits, however much there is to follow."""


def read_imports(program: Program, path: str, text: str) -> Imports:
    """What a file's text says of whom it imports."""
    used: list[str | None] = []
    for dots, dotted, names, modules in _IMPORT.findall(text):
        if modules:
            for module in modules.split(","):
                name = _NAME.match(module.strip())
                if name is not None:
                    used.append(program.find(path, 0, name[0]))
            continue
        found = program.find(path, len(dots), dotted)
        used.append(found)
        if found is not None:
            used += [program.member(found, name) for name in _NAME.findall(names)]
    files = frozenset(one for one in used if one is not None and one != path)
    return Imports(files, "__main__" in text)


def reach_of(program: Program, file: SourceFile) -> Reach:
    """What a script reaches; it is looked through until something of GPUs is found."""
    seen, waiting = {file.path}, [file.path]
    may_use_gpu = False
    while waiting and not may_use_gpu:
        path = waiting.pop()
        if path not in program.glances:
            text = program.text(path) or ""
            others = read_imports(program, path, text).files
            program.glances[path] = (_OF_GPUS.search(text) is not None, others)
        may_use_gpu, others = program.glances[path]
        waiting += sorted(others - seen)
        seen |= others
    return Reach(frozenset(seen - {file.path}), may_use_gpu)
