"""A source file as a list of blocks, each parsed alone.

A block is a top-level statement: a function, a class, an assignment; a class has parts, which are
blocks as well. Its tree keeps the lines that it was parsed with, and the file knows where these
stand now, so that a block survives edits elsewhere untouched. A block that does not parse loses
only its broken lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterable, Mapping, Sequence

from rooflint.literals import without_long_tables
from rooflint.mend import TOO_DEEP, Tries, parse, read
from rooflint.model import SourceSpan
from rooflint.notebooks import is_notebook, plain_lines
from rooflint.plain import plain
from rooflint.regular import MOST_BYTES

_CONTINUES = r"(?:elif|else|except|finally)\b|[)\]}#\s]"
_EMPTY = r"\s*(?:#.*)?$"
_LINE_OF_PIECE = r" on line \d+| \(detected at line \d+\)"
"""The parser is given a piece of the file and counts from there."""
_MOST_MERGES = 40
TOO_LARGE = f"a file of more than {MOST_BYTES // 1_000_000} MB is not read"
_MOST_PIECES = 600_000
"""Of 120,000 lines of models and training; a tree takes up to 1.3 kB for each."""
_PIECES = ",;([{.=+-*/<>:\n"
"""Near each stands a node of the tree: counting these is soon done."""
TOO_MUCH = f"a file of more than {_MOST_PIECES:,} names, values and calls is not read"


@plain
class SyntaxProblem:
    """Where and why a file is not Python."""

    span: SourceSpan
    message: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.message in (TOO_DEEP, TOO_LARGE, TOO_MUCH):
            return "split it to have it checked"
        return "mend the syntax and check again"


@plain
class Block:
    """Some lines of a file and their tree."""

    path: str
    first_line: int
    """Where the block stood in the file when it was parsed; `SourceFile.places` says where now."""
    body: tuple[ast.stmt, ...]
    lines: tuple[str, ...]
    problem: tuple[int, int, str] | None = None
    """Line and column within the block, and the parser's message, if the text did not parse."""
    tree_line: int = 1
    """The line that the tree gives to the block's first line."""
    good: tuple[str, ...] = ()
    """The lines that parsed last, of a block that does not parse now."""
    mended: frozenset[int] = frozenset()
    """Lines within the block in whose place the tree has other text."""
    parts: tuple[tuple[int, Block], ...] = ()
    """Of a class: its statements as blocks, each with the lines that stand above it in the class.
    What the class's own tree says of their lines may be out of date."""

    __eq__ = object.__eq__  # Each is itself alone, whatever others hold.
    __hash__ = object.__hash__

    @property
    def text(self) -> str:
        return "\n".join(self.lines)

    def line(self, tree_line: int) -> str:
        """The text of a line of the tree."""
        at = tree_line - self.tree_line
        return self.lines[at] if 0 <= at < len(self.lines) else ""

    def character(self, tree_line: int, byte_column: int) -> int:
        """The column in characters of a column in UTF-8 bytes, as `ast` counts them."""
        text = self.line(tree_line)
        if text.isascii():
            return byte_column
        return len(text.encode("utf-8", "surrogatepass")[:byte_column].decode("utf-8", "ignore"))

    def segment(self, node: ast.expr | ast.stmt) -> str:
        """The source text of a node."""
        first, last = node.lineno, node.end_lineno or node.lineno
        start = self.character(first, node.col_offset)
        end = self.character(last, node.end_col_offset or 0)
        if first == last:
            return self.line(first)[start:end]
        middle = self.lines[first + 1 - self.tree_line : last - self.tree_line]
        return "\n".join([self.line(first)[start:], *middle, self.line(last)[:end]])


Placed = tuple[int, Block]
"""A block and the line of the file that it starts on."""
Was = Callable[[int], Block | None]
"""The block that stood on a line before the edit."""


@plain
class SourceFile:
    """A file's text and its blocks, in order."""

    path: str
    text: str
    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    places: Mapping[Block, int]
    """The line that each block, and each part of one, starts on."""
    syntax_error: SyntaxProblem | None = None
    has_byte_order_mark: bool = False

    @staticmethod
    def parse(path: str, text: str, previous: SourceFile | None = None) -> SourceFile:
        """Parse a file block by block. Never raises: see `syntax_error`."""
        marked = text.startswith("\ufeff")
        plain = text[1:] if marked else text
        if previous is None or is_notebook(path):
            lines = tuple(split_lines(plain))
        else:
            lines = _split_again(previous, plain)
        if is_notebook(path):
            lines = plain_lines(lines)
        if refusal := _refusal(text):
            too_large = SyntaxProblem(SourceSpan(path, 1, 0, 1, 1), refusal)
            return SourceFile(path, text, lines, (), {}, too_large, marked)
        if previous is not None and previous.path == path and previous.blocks:
            placed = _after_edit(previous, lines)
        else:
            placed = _all_blocks(path, lines, _nothing)
        places: dict[Block, int] = {}
        problem: SyntaxProblem | None = None
        for start, block in placed:
            places[block] = start
            for above, part in block.parts:
                places[part] = start + above
            if block.problem is not None and problem is None:
                line, column, message = block.problem
                at = start + line - 1
                column += marked and at == 1
                message = re.sub(_LINE_OF_PIECE, "", message)
                problem = SyntaxProblem(SourceSpan(path, at, column, at, column + 1), message)
        blocks = tuple(block for _, block in placed)
        return SourceFile(path, text, lines, blocks, places, problem, marked)

    def mended_lines(self) -> frozenset[int]:
        """Lines that are half typed, so that what is known of them is of other text."""
        return frozenset(self.places[b] + line - 1 for b in self.blocks for line in b.mended)

    def line_of(self, block: Block, tree_line: int) -> int:
        """The line of the file, or of the one that a block is of, that its tree calls so."""
        return self.places.get(block, block.first_line) + tree_line - block.tree_line

    def span(self, block: Block, node: ast.expr | ast.stmt | ast.arg | ast.keyword) -> SourceSpan:
        """Where a node of a block stands in the file, or in the one that the block is of."""
        last = node.end_lineno or node.lineno
        start = block.character(node.lineno, node.col_offset)
        end = block.character(last, node.end_col_offset or 0)
        return self.span_of_lines(block, node.lineno, start, last, end)

    def span_of_lines(
        self, block: Block, line: int, column: int, end_line: int, end_column: int
    ) -> SourceSpan:
        """The same for lines of the block's tree and columns in characters."""
        first, last = self.line_of(block, line), self.line_of(block, end_line)
        if self.has_byte_order_mark and block.path == self.path:
            column += first == 1
            end_column += last == 1
        return SourceSpan(block.path, first, column, last, end_column)


def split_lines(text: str) -> list[str]:
    """CRLF and lone CR end lines for Python and for editors; form feeds do not."""
    return re.split(r"\r\n|\r|\n", text) if "\r" in text else text.split("\n")


def _split_again(previous: SourceFile, text: str) -> tuple[str, ...]:
    """The lines of an edited text. At its start and end, where it is as it was, they are the same
    objects: those are soon compared."""
    old, lines = previous.text[previous.has_byte_order_mark :], previous.lines
    start = text.rfind("\n", 0, _alike(old, text)) + 1
    at_end = _alike_at_end(old, text, min(len(old), len(text)) - start)
    end = text.find("\n", len(text) - at_end) + 1
    before = _ends(text, 0, start)
    if not end:
        return lines[:before] + tuple(split_lines(text[start:]))
    after = before + _ends(old, start, len(old) - len(text) + end)
    return lines[:before] + tuple(split_lines(text[start:end])[:-1]) + lines[after:]


def _ends(text: str, start: int, end: int) -> int:
    """How many lines end in a part of a text that starts and ends with whole lines."""
    count = text.count("\n", start, end)
    if "\r" in text:
        count += text.count("\r", start, end) - text.count("\r\n", start, end)
    return count


def _refusal(text: str) -> str | None:
    """Why a text is not read: its tree would fill the memory."""
    if len(text) > MOST_BYTES:
        return TOO_LARGE
    if len(text) > _MOST_PIECES and _pieces_in(text) > _MOST_PIECES:
        return TOO_MUCH if _pieces_in(without_long_tables(text)) > _MOST_PIECES else None
    return None


def _pieces_in(text: str) -> int:
    return sum(map(text.count, _PIECES))


def _all_blocks(path: str, lines: tuple[str, ...], was: Was) -> list[Placed]:
    tree = parse("\n".join(lines))
    if isinstance(tree, ast.Module):
        return _blocks_of(path, lines, tree.body)
    return _blocks_by_indent(path, lines, 1, was)


def _blocks_of(
    path: str, lines: Sequence[str], body: Iterable[ast.stmt], above: int = 0
) -> list[Placed]:
    """One block for each run of statements that share no line with the next.

    `above` are the lines of the file above the first one that the tree counts.
    """
    placed: list[Placed] = []
    group: list[ast.stmt] = []
    start = end = 0
    for statement in [*body, None]:
        first = _first_line(statement) if statement is not None else end + 1
        if group and first > end:
            parts: list[Placed] = []
            if len(group) == 1 and isinstance(group[0], ast.ClassDef):
                parts = [
                    (at - above - start, part)
                    for at, part in _blocks_of(path, lines, group[0].body, above)
                ]
                if parts and parts[0][0] == 0:
                    parts = []  # `class A: pass`
            own = tuple(lines[start - 1 : end])
            block = Block(
                path, start + above, tuple(group), own, tree_line=start, parts=tuple(parts)
            )
            placed.append((start + above, block))
            group = []
        if statement is not None:
            if not group:
                start = first
            group.append(statement)
            end = statement.end_lineno or statement.lineno
    return placed


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _blocks_by_indent(path: str, lines: tuple[str, ...], first_line: int, was: Was) -> list[Placed]:
    """Blocks of a text that does not parse as a whole: split where a line starts at column 0."""
    starts = [
        i
        for i, line in enumerate(lines)
        if line and not re.match(_CONTINUES, line) and not (i and lines[i - 1].startswith("@"))
    ]
    first = next((i for i, line in enumerate(lines) if not re.match(_EMPTY, line)), len(lines))
    if first < min([*starts, len(lines)]):
        starts.insert(0, first)
    placed: list[Placed] = []
    tries = Tries(lines)
    at = 0
    while at < len(starts):
        start = starts[at]
        step, found = 1, False
        broken: tuple[tuple[str, ...], SyntaxError] | None = None
        # Text at column 0 within a string or brackets belongs to what came before it.
        for count in range(1, min(_MOST_MERGES, len(starts) - at) + 1):
            end = starts[at + count] if at + count < len(starts) else len(lines)
            piece = lines[start:end]
            text = "\n".join(piece)
            tree = parse(text) if count == 1 else tries.parse(text)
            if isinstance(tree, ast.Module):
                step, found = count, True
                placed += _blocks_of(path, piece, tree.body, first_line + start - 1)
                break
            broken = broken or (piece, tree)
            if (count == 1 and not _is_open(tree)) or tries.are_over():
                break
        if not found and broken is not None:
            at_line = first_line + start
            placed.append((at_line, _repaired(path, *broken, at_line, was(at_line), tries)))
        at += step
    return placed


def _is_open(error: SyntaxError) -> bool:
    """Whether more text could still make it right."""
    message = error.msg or ""
    return "never closed" in message or "unterminated triple" in message or "EOF" in message


def _repaired(
    path: str,
    lines: tuple[str, ...],
    error: SyntaxError,
    first_line: int,
    previous: Block | None,
    tries: Tries,
) -> Block:
    """The block with something else in place of its broken lines."""
    good = _good_lines(previous)
    reading = read(lines, error, good, tries)
    return Block(
        path,
        first_line,
        reading.body,
        lines,
        reading.problem,
        good=good,
        mended=reading.mended,
    )


def _good_lines(block: Block | None) -> tuple[str, ...]:
    """The lines of a block when it parsed last."""
    if block is None:
        return ()
    return block.good if block.problem else block.lines


def _after_edit(previous: SourceFile, lines: tuple[str, ...]) -> list[Placed]:
    """Blocks of an edited file: those that the edit did not touch are taken over."""
    old = previous.lines
    placed = [(previous.places[block], block) for block in previous.blocks]
    if old == lines:
        return placed
    same_before = _alike(old, lines)
    same_after = _alike_at_end(old, lines, min(len(old), len(lines)) - same_before)
    moved_by = len(lines) - len(old)
    # A block is kept if it and the line after it (`else:` could appear there) are unchanged.
    before = [(at, b) for at, b in placed if at + len(b.lines) <= same_before]
    after = [(at, b) for at, b in placed if at > len(old) - same_after + 1]
    touched = placed[len(before) : len(placed) - len(after)]
    is_inside = same_before < len(lines) and lines[same_before].startswith((" ", "\t"))
    if not touched and before and is_inside:
        touched = [before.pop()]  # What follows a class may go on with it.
    if len(touched) == 1:
        inside = _with_new_part(*touched[0], lines, same_before, len(old) - same_after, moved_by)
        if inside is not None:
            return [*before, inside, *((at + moved_by, b) for at, b in after)]
    start = before[-1][0] + len(before[-1][1].lines) if before else 1
    first = next((line for line in lines[start - 1 :] if not re.match(_EMPTY, line)), "")
    if before and re.match(_CONTINUES, first):
        start = before.pop()[0]
    end = after[0][0] + moved_by - 1 if after else len(lines)
    last = next(
        (line for line in reversed(lines[start - 1 : end]) if not re.match(_EMPTY, line)), ""
    )
    if after and last.startswith("@"):
        at, block = after.pop(0)
        end = at + moved_by + len(block.lines) - 1
    between = lines[start - 1 : end]
    tree = parse("\n".join(between))
    by_line = dict(placed)

    def was(first_line: int) -> Block | None:
        moved = 0 if first_line <= same_before + 1 else moved_by
        return by_line.get(first_line - moved)

    path = previous.path
    if isinstance(tree, ast.Module):
        changed = _blocks_of(path, between, tree.body, start - 1)
    elif _may_close(tree) and any(block.problem for _, block in (*before, *after)):
        return _all_blocks(path, lines, was)
    else:
        changed = _blocks_by_indent(path, between, start, was)
    return [*before, *changed, *((at + moved_by, block) for at, block in after)]


def _alike(some: Sequence[str], others: Sequence[str]) -> int:
    """How many lines, or characters, at the start are the same."""
    same, most = 0, min(len(some), len(others))
    while same < most:
        # Whole stretches at a time: comparing those is quick.
        step = 1
        while same + step <= most and some[same : same + step] == others[same : same + step]:
            same += step
            step *= 2
        if step == 1:
            break
    return same


def _alike_at_end(some: Sequence[str], others: Sequence[str], most: int) -> int:
    """The same at the end, up to so many."""
    same, (end, other_end) = 0, (len(some), len(others))
    while same < most:
        step = 1
        while (
            same + step <= most
            and some[end - same - step : end - same]
            == others[other_end - same - step : other_end - same]
        ):
            same += step
            step *= 2
        if step == 1:
            break
    return same


def _with_new_part(
    start: int, block: Block, lines: tuple[str, ...], first: int, last: int, moved_by: int
) -> Placed | None:
    """A class of which only one statement was changed, with that parsed anew.

    The lines `first` to `last` of the file as it was, from 0, are those that were changed. `None`:
    the class is to be parsed as a whole.
    """
    if not block.parts:
        return None
    ends = [start - 1 + above for above, _ in block.parts[1:]]
    ends.append(max(start - 1 + len(block.lines), last))
    for index, ((above, part), end) in enumerate(zip(block.parts, ends, strict=True)):
        at = start - 1 + above
        if not at <= first <= last <= end:
            continue
        own = lines[at : end + moved_by]
        is_seam = last == end and index + 1 < len(block.parts)
        new = _parts_of(block.path, at, own, part, is_seam)
        if new is None:
            return None
        following = [(up + moved_by, other) for up, other in block.parts[index + 1 :]]
        parts = (*block.parts[:index], *((line - start, b) for line, b in new), *following)
        whole = lines[start - 1 : ends[-1] + moved_by]
        return start, _class_of(block, start, whole, parts)
    return None


def _parts_of(
    path: str, above: int, lines: tuple[str, ...], previous: Block, is_seam: bool
) -> list[Placed] | None:
    """The blocks of some lines of a class; `None`: they make no sense of their own.

    `above` are the lines of the file above; `is_seam`: the next statement of the class may belong
    to what does not parse.
    """
    # Within a class, so that the indentation is right; one line more than there is.
    wrapped = ("class _:", *lines)
    tree = parse("\n".join(wrapped))
    if isinstance(tree, ast.Module):
        body = _only_class(tree.body, previous)
        return _blocks_of(path, wrapped, body, above - 1) if body is not None else None
    if is_seam or all(re.match(_EMPTY, line) for line in lines):
        return None
    good = _good_lines(previous)
    reading = read(wrapped, tree, ("class _:", *good))
    body = _only_class(reading.body, previous)
    if body is None or reading.problem is None:
        return None
    line, column, message = reading.problem
    problem = (max(line - 1, 1), column, message)
    mended = frozenset(n - 1 for n in reading.mended)
    block = Block(path, above + 1, tuple(body), lines, problem, 2, good, mended)
    return [(above + 1, block)]


def _only_class(body: Sequence[ast.stmt], like: Block) -> list[ast.stmt] | None:
    """The statements of the class that is all there is, if they stand below those of a block."""
    one = body[0] if len(body) == 1 else None
    if not isinstance(one, ast.ClassDef) or not like.body:
        return None
    column = like.body[0].col_offset
    return one.body if all(part.col_offset == column for part in one.body) else None


def _class_of(block: Block, start: int, lines: tuple[str, ...], parts: tuple[Placed, ...]) -> Block:
    """A class with other statements than it had."""
    before = block.body[0]
    assert isinstance(before, ast.ClassDef)
    node = ast.ClassDef(**vars(before))
    node.body = [statement for _, part in parts for statement in part.body]
    node.end_lineno = block.tree_line + len(lines) - 1
    broken = [(above, part) for above, part in parts if part.problem is not None]
    problem = None
    if broken:
        above, part = broken[0]
        assert part.problem is not None
        problem = (part.problem[0] + above, *part.problem[1:])
    good = _good_lines(block) if problem else ()
    mended = frozenset(line + above for above, part in parts for line in part.mended)
    return Block(block.path, start, (node,), lines, problem, block.tree_line, good, mended, parts)


def _may_close(error: SyntaxError) -> bool:
    """Whether the text may end what another block has open."""
    message = error.msg or ""
    return message.startswith(("unmatched", "closing parenthesis", "unterminated"))


def _nothing(first_line: int) -> None:
    """What stood on a line of a file that was not seen before."""
