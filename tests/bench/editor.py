"""The server as an editor feels it: against ruff's, an empty one and the parser."""

from __future__ import annotations

import ast
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from .client import Client
from .peers import packages, peers
from .timing import Row, rooflint, row

EMPTY = """\
from pygls.lsp.server import LanguageServer
LanguageServer("empty", "1").start_io()
"""
OURS = 'while True: {name} = torch.ones(2, device="cuda").sum(); {name}.item()'
"""What an edit puts in: we quote the expression that waits, ruff a name that nothing defines."""
RUFF = "zq_x = {name}"
OPEN_FILES, MANY_FILES = 200, 50_000


class Site(NamedTuple):
    """A line to be put in."""

    line: int
    indent: str


class Felt(NamedTuple):
    """Milliseconds from a change to the diagnostics that name it, and those of a hover."""

    changes: list[float]
    parses: list[float]
    """`ast.parse` of the whole text, in between."""
    hovers: list[float]
    memory_mib: float

    def p95(self, times: str = "changes") -> float:
        ordered = sorted(getattr(self, times))
        return ordered[round(0.95 * (len(ordered) - 1))]


def measure(runs: int) -> Iterator[Row]:
    """All that is said of the server."""
    ruff = [str(peers() / "ruff"), "server"]
    ours, edits = rooflint("server"), 10 * runs
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        for lines, text in long_files().items():
            file = root / f"f{lines}.py"
            file.write_text(text, "utf-8")
            yield from changes(file, ours, ruff, edits, lines)
        yield start(runs, root)
        yield many_open(sorted(packages().joinpath("timm").rglob("*.py"))[:OPEN_FILES], root)
        yield many_around(root)


def changes(
    file: Path, ours: list[str], ruff: list[str] | None, edits: int, lines: int
) -> Iterator[Row]:
    text = file.read_text("utf-8")
    inside = edited(ours, file, inside_a_function(text), OURS, edits)
    floor = edited(ruff, file, inside_a_function(text), RUFF, edits) if ruff else None
    about = f"a change inside a function, {lines:,} lines"
    yield row(f"{about}: p50, against ruff server's", median(inside.changes), "ms",
              median(floor.changes) if floor else None)  # fmt: skip
    yield row(f"{about}: p95", inside.p95(), "ms")
    outside = edited(ours, file, between_statements(text), OURS, edits)
    yield row(f"a change between functions, {lines:,} lines: p95, against `ast.parse` of the file",
              outside.p95(), "ms", median(outside.parses))  # fmt: skip
    yield row(f"hover, {lines:,} lines: p95", inside.p95("hovers"), "ms")
    yield row(f"memory with a file of {lines:,} lines open", inside.memory_mib, "MiB")


def start(runs: int, root: Path) -> Row:
    commands = {"ours": rooflint("server"), "empty": [sys.executable, "-c", EMPTY]}
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(runs):
        for name, command in commands.items():
            client = Client(command, root)
            times[name].append(client.start_ms)
            client.close()
    return row("start to the answer to `initialize`, against an empty pygls server",
               median(times["ours"]), "CPU ms", median(times["empty"]))  # fmt: skip


def many_open(files: Sequence[Path], root: Path) -> Row:
    """Memory with many files open, once something was said of each."""
    client = Client(rooflint("server"), root)
    for file in files:
        client.open(file.as_uri(), file.read_text("utf-8"))
    client.told_all(file.as_uri() for file in files)
    time.sleep(5)  # What is done when nothing else is asked for counts as well.
    memory_mib = client.memory_mib
    client.close()
    return row(f"memory with {len(files)} files open", memory_mib, "MiB")


def many_around(root: Path) -> Row:
    """Memory with one file open in a folder of many."""
    small = "import torch\n\n\ndef f(x):\n    return x.item()\n"
    for n in range(MANY_FILES):
        folder = root / "many" / f"p{n // 100}"
        folder.mkdir(parents=True, exist_ok=True)
        (folder / f"m{n % 100}.py").write_text(small)
    client = Client(rooflint("server"), root / "many")
    one = root / "many" / "p0" / "m0.py"
    client.open(one.as_uri(), small + OURS.format(name="zq_0") + "\n")
    client.told(one.as_uri(), "zq_0")
    time.sleep(10)
    memory_mib = client.memory_mib
    client.close()
    return row(f"memory in a folder of {MANY_FILES:,} files", memory_mib, "MiB")


def long_files() -> dict[int, str]:
    """Three files of real code, by their number of lines."""
    transformers = packages() / "transformers" / "transformers"
    import torch  # Its longest file is nobody's dependency and always at hand.

    found = [
        transformers / "models" / "clip" / "modeling_clip.py",
        transformers / "modeling_utils.py",
        Path(torch.__file__).parent / "_inductor" / "ir.py",
    ]
    texts = [path.read_text("utf-8") for path in found]
    return {len(text.splitlines()): text for text in texts}


def edited(command: list[str], file: Path, site: Site, text: str, edits: int) -> Felt:
    """Edit one line again and again, each time to something new, as fast as answers come."""
    lines = file.read_text("utf-8").split("\n")
    shown = [site.indent + text.format(name=f"zq_{n}") for n in range(edits + 1)]
    lines.insert(site.line, shown[0])
    whole = "\n".join(lines)
    client, uri = Client(command, file.parent), file.as_uri()
    client.open(uri, whole)
    client.told(uri, "zq_0")
    time.sleep(2)
    changed: list[float] = []
    parses: list[float] = []
    for n in range(1, edits + 1):
        sent = time.perf_counter()
        client.change(uri, n + 1, site.line, shown[n - 1], shown[n])
        changed.append((client.told(uri, f"zq_{n}") - sent) * 1e3)
        if n % 3 == 0:
            sent = time.perf_counter()
            ast.parse(whole)
            parses.append((time.perf_counter() - sent) * 1e3)
        time.sleep(0.1)
    hovers = [
        client.request(
            "textDocument/hover",
            {"textDocument": {"uri": uri}, "position": {"line": line, "character": 8}},
        )
        for line in [site.line, *range(0, len(lines), max(1, len(lines) // 40))]
        if command[-1] == "server" and command[0] == sys.executable
    ]
    memory_mib = client.memory_mib
    client.close()
    return Felt(changed, parses, hovers, memory_mib)


def inside_a_function(text: str) -> Site:
    """Before the statement of a function that is nearest to the file's middle."""
    middle = text.count("\n") / 2
    statements = (
        statement
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef)
        for statement in node.body
        if isinstance(statement, (ast.Assign, ast.Return, ast.If, ast.For))
    )
    found = min(statements, key=lambda one: abs(one.lineno - middle))
    return Site(found.lineno - 1, " " * found.col_offset)


def between_statements(text: str) -> Site:
    """Below the statement of the module that ends nearest to its middle."""
    middle = text.count("\n") / 2
    ends = (statement.end_lineno or 0 for statement in ast.parse(text).body)
    return Site(min(ends, key=lambda end: abs(end - middle)), "")
