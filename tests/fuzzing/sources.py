"""Files of Python and notebooks, damaged, cross-bred, nested and huge."""

from __future__ import annotations

import ast
import contextlib
import io
import json
import os
import re
import warnings
from collections.abc import Callable, Sequence
from functools import cache
from pathlib import Path
from random import Random

from notebook_maker import make_notebook

import rooflint
from fuzzing.nasty import damage_bytes, damage_json, damage_text, dump_json
from fuzzing.promises import no_fault, refused, soon
from rooflint import cli
from rooflint.files import read_text
from rooflint.ignore import ignore_here
from rooflint.model import Edit, Finding
from rooflint.source import SourceFile

TESTS = Path(__file__).parents[1]
FOLDERS = ("cases", "cases_more", "rules", "constructs", "fixes", "scripts")

NEWEST = """
def first[T: (int, str) = int, *Ts, **P](x: T, *a: *Ts) -> T: return x.item()
type Pair[A, B = int] = tuple[A, B]
class Box[T](list[T]): item = torch.ones(3).cuda()
try: loss.item()
except* (ValueError, TypeError) as group: print(loss)
except ValueError, TypeError: pass
match loss.cpu(), x:
    case [torch.Tensor() as t, *_] | {"a": t, **rest} if (n := t.item()) > 0: print(t)
    case Point(x=0, y=-1.5j) | None | "a" "b": ...
with (open("a") as a, loss.cpu() as b,): pass
print(f"{loss!r:>{width}} {f'{loss.item()=}'} {'a' if x else f"{"nested"}"}")
print(t"{loss.item()} and {x:.2f}")
lambda x, /, y=1, *, z: (yield)
async def go():
    async with a as b, c: return [await x async for x in y if await z]
    async for x in loader: await x.cpu()
@(lambda f: f)
def decorated(): nonlocal_ = 1; del nonlocal_
x: int = (yield)
print(*[loss.item()], **{"a": loss}, sep="")
x[1:2, ..., *rest] @= ~y ** -z if not w else -0x_F_F
for x[0], *rest.y in [(1, 2, 3)]: break
else: continue
global loss; assert (loss, "always true"); raise loss from None
while loss.item() > 0: loss = loss - 1
lazy import numpy as np
from __future__ import annotations, no_such_feature
import torch.nn.functional as F, a.b.c
print((yield from x), (await y), *z)
if True:
\tif x.cuda():
        \ty = 1
"""


def case(dice: Random, folder: Path) -> None:
    """One file, or a few that import each other, as an editor and as a terminal have them."""
    kind = dice.randrange(10)
    if kind < 6:
        _as_text(dice, _text(dice))
    elif kind == 6:
        _as_text(dice, _deep(dice))
    elif kind == 7:
        _as_files(dice, folder)
    elif kind == 8:
        _as_bytes(dice, folder)
    else:
        _as_notebook(dice, folder)


# --- what is checked --------------------------------------------------------------------


def _as_text(dice: Random, text: str) -> None:
    """As an editor has it: opened, edited, and edited again."""
    size = text.count("\n") + len(text) // 100
    project = rooflint.open_project(lambda: ["a.py"], lambda path: text)
    with no_fault(), soon(size):
        file = rooflint.open_source("a.py", text)
        check_findings(file, rooflint.check(file, project=project))
    for _ in range(2):
        text = damage_text(dice, text, 1)
        with no_fault(), soon(size):
            file = rooflint.open_source("a.py", text, file)
            check_findings(file, rooflint.check(file, project=project))


def _as_files(dice: Random, folder: Path) -> None:
    """Modules that import each other in circles, checked from a terminal."""
    names = ["a", "b", "train", "pkg/__init__", "pkg/b"][: dice.randrange(2, 6)]
    for name in names:
        path = folder / f"{name}.py"
        path.parent.mkdir(exist_ok=True)
        others = [f"from {'.' * dice.randrange(3)}{other.replace('/', '.')} import *\n"
                  f"import {other.partition('/')[0]}\n" for other in names]  # fmt: skip
        with contextlib.suppress(UnicodeEncodeError):
            path.write_text("".join(dice.sample(others, 2)) + _text(dice), encoding="utf-8")
    _in_terminal(dice, folder)


def _as_bytes(dice: Random, folder: Path) -> None:
    data = _text(dice).encode(
        dice.choice(("utf-8", "latin-1", "utf-16", "utf-32", "cp1252", "shift_jis", "utf-7")),
        "replace",
    )
    if dice.random() < 0.5:
        names = (
            "utf-8",
            "latin-1",
            "utf-16",
            "rot13",
            "hex",
            "zip",
            "idna",
            "undefined",
            "x" * 999,
        )
        data = f"# -*- coding: {dice.choice(names)} -*-\n".encode() + data
    (folder / "a.py").write_bytes(damage_bytes(dice, data, dice.choice((0, 1, 30))))
    _in_terminal(dice, folder / "a.py")


def _as_notebook(dice: Random, folder: Path) -> None:
    text = _text(dice)
    magics = ("%time ", "!", "%%bash\n", "%%time\n", "?", "x = !ls ", "%", "%%", "a??\n", "  !")
    cells = [dice.choice(("", "", *magics)) + cell for cell in re.split(r"\n\n\n", text)]
    notebook = damage_json(dice, make_notebook(*cells), dice.choice((0, 1, 4)))
    path = folder / "a.ipynb"
    data = dump_json(dice, notebook)
    path.write_bytes(damage_bytes(dice, data, 2) if dice.random() < 0.2 else data)
    read = refused(lambda: read_text(path))
    if read is not None:
        with no_fault(), soon(len(read) // 50):
            file = rooflint.open_source(str(path), read)
            check_findings(file, rooflint.check(file), is_notebook=True)
    _in_terminal(dice, path)


def _in_terminal(dice: Random, path: Path) -> None:
    out, err = io.StringIO(), io.StringIO()
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    size = sum(len(file.read_bytes()) for file in files) // 50
    output_format = dice.choice(("text", "json"))
    told = contextlib.redirect_stdout(out), contextlib.redirect_stderr(err)
    with no_fault(), soon(size), told[0], told[1]:
        code = cli.main(["check", str(path), "--output-format", output_format])
    assert code in (cli.CLEAN, cli.FOUND, cli.FAILED)
    assert all(line.startswith("rooflint: ") for line in err.getvalue().splitlines()), (
        err.getvalue()
    )
    if output_format == "json" and code != cli.FAILED:
        json.loads(out.getvalue())


def check_findings(
    file: SourceFile, findings: Sequence[Finding], is_notebook: bool = False
) -> None:
    """Findings stand in the file, and a fix of what is Python is Python."""
    marked = 1 if file.has_byte_order_mark else 0
    for finding in findings:
        for span in (finding.span, *(e.span for fix in finding.fixes for e in fix.edits)):
            assert 1 <= span.line <= span.end_line <= len(file.lines) + 1, span
            if span.line <= len(file.lines):
                longest = len(file.lines[span.line - 1]) + (marked if span.line == 1 else 0)
                assert 0 <= span.column <= longest, span
            if span.end_line <= len(file.lines):
                longest = len(file.lines[span.end_line - 1]) + (marked if span.end_line == 1 else 0)
                assert 0 <= span.end_column <= longest, span
        assert finding.message and "\n" not in finding.message
        ignore_here(file, finding)
    if file.syntax_error is None and not is_notebook:
        for finding in findings[:3]:
            for fix in finding.fixes:
                fixed = applied(file, fix.edits)
                problem = rooflint.open_source(file.path, fixed).syntax_error
                assert problem is None, f"{fix.title}: {problem}"


def applied(file: SourceFile, edits: Sequence[Edit]) -> str:
    """The text of a file after some edits, with plain ends of lines."""
    lines = list(file.lines)
    for edit in sorted(edits, key=lambda e: (e.span.line, e.span.column), reverse=True):
        span = edit.span
        if file.has_byte_order_mark and span.line == 1:
            continue
        while len(lines) < span.end_line:
            lines.append("")
        start, end = (
            lines[span.line - 1][: span.column],
            lines[span.end_line - 1][span.end_column :],
        )
        lines[span.line - 1 : span.end_line] = (start + edit.text + end).split("\n")
    return "\n".join(lines)


# --- what it is made of -----------------------------------------------------------------


def _text(dice: Random) -> str:
    kind = dice.randrange(12)
    if kind < 4:
        return damage_text(dice, _whole(dice), dice.choice((1, 1, 3, 20)))
    if kind < 8:
        text = _crossed(dice)
        return damage_text(dice, text, 1) if dice.random() < 0.3 else text
    if kind == 8:
        return _with_newest(dice)
    if kind == 9:
        return _with_newest(dice).replace("\n", dice.choice(("\r\n", "\r", "\n\r")))
    if kind == 10:
        return "".join(dice.choice(_words()) for _ in range(dice.randrange(400)))
    return _long(dice)


def _whole(dice: Random) -> str:
    mark = "\ufeff" if dice.random() < 0.05 else ""
    return mark + dice.choice(_texts())


def _with_newest(dice: Random) -> str:
    lines = _whole(dice).split("\n")
    newest = NEWEST.split("\n")
    for _ in range(dice.choice((1, 3, 10))):
        at, of = dice.randrange(len(lines) + 1), dice.randrange(len(newest))
        indent = re.match(r"[ \t]*", lines[at - 1] if at else "")
        put = newest[of : of + dice.choice((1, 1, 3))]
        lines[at:at] = [(indent[0] if indent else "") + line for line in put]
    return "\n".join(lines)


def _long(dice: Random) -> str:
    """Much of one thing: 100,000 lines, a megabyte on one line."""
    lines = _whole(dice).split("\n")
    line = dice.choice(lines)
    what = dice.randrange(6)
    much = dice.choice((300, 3_000))
    if what == 0:
        return "\n".join([*lines, *[line] * much])
    if what == 1:
        return "import torch\nx = [" + "torch.ones(3).cuda().item(), " * much + "]\n"
    if what == 2:
        return (
            _whole(dice)
            + "\n"
            + dice.choice(("#", " ", "x", "\\", "'", "(", "%", ".", "=")) * (100 * much)
        )
    if what == 3:
        return "import torch\nx = torch.ones(3).cuda()\n" + "".join(
            f"def f{n}(x):\n    return f{n - 1 if n else much - 1}(x) + x.item()\n"
            for n in range(much // 10)
        )
    if what == 4:
        return "\n".join([line[:1] + word for line in lines for word in (line, line.strip())])
    return "import torch\nfor i in range(9):\n" + "".join(
        f"    x{n} = torch.ones(3).cuda()\n    print(x{max(0, n - 1)}.item())\n"
        for n in range(much // 3)
    )


def _deep(dice: Random) -> str:
    """Something around itself, many times."""
    depth = dice.choice((20, 90, 200, 400, 1_000, 3_000))
    shapes: Sequence[Callable[[int], str]] = (
        lambda n: "x = " + "(" * n + "y" + ")" * n,
        lambda n: "x = " + "[" * n + "y.item()" + "]" * n,
        lambda n: "x = " + "{1: " * n + "y" + "}" * n,
        lambda n: "x = y" + ".cuda()" * n,
        lambda n: "x = y" + ".a" * n,
        lambda n: "x = y" + "[0]" * n,
        lambda n: "x = " + "f(" * n + "y.item()" + ")" * n,
        lambda n: "x = " + "not " * n + "y",
        lambda n: "x = " + "-" * n + "y",
        lambda n: "x = y" + " + y" * n,
        lambda n: "x = y" + " if y else y" * n,
        lambda n: "x = y" + " or y" * n,
        lambda n: "x = y" + " < y" * n,
        lambda n: "x = " + "lambda: " * n + "y",
        lambda n: "x = " + "[z for z in " * n + "y" + "]" * n,
        lambda n: "x = " + "y ** " * n + "y",
        lambda n: "x = " + "y = " * n + "y",
        lambda n: "if y:\n    x = 1\n" + "elif y.item():\n    x = y\n" * n,
        lambda n: _stairs("if y:", min(n, 99)) + "x = y.item()",
        lambda n: _stairs("def f(x):", min(n, 99)) + "y.item()",
        lambda n: _stairs("class A:", min(n, 99)) + "y = 1",
        lambda n: _stairs("for i in y:", min(n, 19)) + "y.item()",
        lambda n: _stairs("while y:", min(n, 19)) + "y = y.cpu()",
        lambda n: _stairs("try:", min(n, 19)) + "y.item()",
        lambda n: "f'" + "{f\"" * min(n, 2) + "{y.item()}" + "\"}" * min(n, 2) + "'",
        lambda n: "x = f'{y:" + "{y:" * n + "}" * n + "}'",
        lambda n: "@y\n" * n + "def f(): pass",
        lambda n: "def f(" + ", ".join(f"a{i}=y.item()" for i in range(n)) + "): pass",
        lambda n: "class A:\n    pass\n" + "class A(A): x = A()\n" * (n // 10),
        lambda n: "".join(f"def f{i}(g=f{i - 1}): return g(g)\n" for i in range(1, n // 5)),
        lambda n: "class A: pass\nA.__call__ = A()\nA()()",
        lambda n: "f = lambda g: g(g)\nf(f)",
        lambda n: "from functools import partial\nf = print\n" + "f = partial(f, f)\n" * (n // 10),
        lambda n: "d = {}\n" + "d = {'d': d, 'e': [d]}\n" * (n // 10) + "print(d)",
        lambda n: "match y:\n    case " + "[" * n + "a" + "]" * n + ": pass",
        lambda n: "with " + ", ".join(["y as z"] * n) + ": pass",
        lambda n: "x = '''" + "a\n" * n,
        lambda n: "(\n" * n,
        lambda n: "x = (" + "y,\n" * n,
        lambda n: "\\\n" * n + "x = y",
        lambda n: "x = b'" + "\\x00" * n + "' 'a'",
        lambda n: "x = " + "'a' " * n,
    )  # fmt: skip
    head = "import torch\ny = torch.ones(3).cuda()\nfor i in range(9): print(y)\n"
    return head + dice.choice(shapes)(depth) + "\n" + dice.choice(("", "print(y.item())\n"))


def _stairs(head: str, depth: int) -> str:
    """Blocks within blocks, up to where a statement goes."""
    return "".join(" " * n + head + "\n" for n in range(depth)) + " " * depth


def _crossed(dice: Random) -> str:
    """Two files whose statements and expressions were exchanged: Python that nobody wrote."""
    one, other = (_tree(dice.choice(_texts())) for _ in range(2))
    if one is None or other is None:
        return _whole(dice)
    expressions = [n for n in ast.walk(other) if isinstance(n, ast.expr) and _is_value(n)]
    statements = [n for n in ast.walk(other) if isinstance(n, ast.stmt)]
    rate = dice.choice((0.01, 0.05, 0.3))
    for node in list(ast.walk(one)):
        for name, held in list(ast.iter_fields(node)):
            if isinstance(held, ast.expr) and _is_value(held) and expressions:
                if dice.random() < rate:
                    setattr(node, name, dice.choice(expressions))
            elif isinstance(held, list) and held and isinstance(held[0], ast.stmt):
                if dice.random() < rate:
                    held.insert(dice.randrange(len(held) + 1), dice.choice(statements))
                if dice.random() < rate / 2 and len(held) > 1:
                    del held[dice.randrange(len(held))]
                if dice.random() < rate / 2:
                    dice.shuffle(held)
            elif (
                isinstance(held, list)
                and (held and expressions)
                and (isinstance(held[0], ast.expr) and _is_value(held[0]))
                and dice.random() < rate
            ):
                held[dice.randrange(len(held))] = dice.choice(expressions)
    try:
        # What holds itself has no end, what is exchanged again and again has none soon.
        text = ast.unparse(ast.fix_missing_locations(one))
    except (RecursionError, ValueError, AttributeError, TypeError):
        return _whole(dice)
    return text[:60_000]


def _is_value(node: ast.expr) -> bool:
    return isinstance(getattr(node, "ctx", ast.Load()), ast.Load) and not isinstance(
        node, ast.Slice | ast.Starred | ast.JoinedStr | ast.FormattedValue
    )


def _tree(text: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return None


@cache
def _texts() -> tuple[str, ...]:
    """Files to begin with: those of the tests, and some of Python's own."""
    paths = [p for name in FOLDERS for p in sorted((TESTS / name).rglob("*.py"))]
    own = Path(os.__file__).parent
    paths += [
        own / f"{name}.py" for name in ("abc", "bisect", "heapq", "keyword", "shelve", "this")
    ]
    return tuple(p.read_text("utf-8", "replace") for p in paths if p.is_file())


@cache
def _words() -> tuple[str, ...]:
    """What files are made of, to be put in any order."""
    found = {word for text in _texts()[:40] for word in re.findall(r"\w+|[^\w\s]|\s+", text)}
    return tuple(sorted(found))
