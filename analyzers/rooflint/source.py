"""A source file as a list of blocks, each parsed alone.

A block is a top-level statement: a function, a class, an assignment. Its tree keeps the lines
that it was parsed with, and the block knows where these stand in the file now, so that it
survives edits elsewhere untouched. A block that does not parse loses only its broken lines.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from rooflint.mend import TOO_DEEP, parse, read
from rooflint.model import SourceSpan

_CONTINUES = re.compile(r"(?:elif|else|except|finally)\b|[)\]}#\s]")
_EMPTY = re.compile(r"\s*(?:#.*)?$")
_MOST_MERGES = 40


@dataclass(frozen=True, slots=True)
class SyntaxProblem:
    """Where and why a file is not Python."""

    span: SourceSpan
    message: str

    @property
    def remedy(self) -> str:
        """What to do about it."""
        if self.message == TOO_DEEP:
            return "split it to have it checked"
        return "mend the syntax and check again"


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Some lines of a file and their tree."""

    text: str
    first_line: int
    """Where the block starts in the file."""
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
    path: str = ""
    """The file that it is of."""

    def moved_to(self, first_line: int) -> Block:
        """The same block, after an edit above it."""
        if first_line == self.first_line:
            return self
        return replace(self, first_line=first_line)

    def file_line(self, tree_line: int) -> int:
        """The line of the file that the tree calls so."""
        return tree_line - self.tree_line + self.first_line

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
        middle = [self.line(n) for n in range(first + 1, last)]
        return "\n".join([self.line(first)[start:], *middle, self.line(last)[:end]])


Was = Callable[[int], Block | None]
"""The block that stood on a line before the edit."""


@dataclass(frozen=True, slots=True)
class SourceFile:
    """A file's text and its blocks, in order."""

    path: str
    text: str
    lines: tuple[str, ...]
    blocks: tuple[Block, ...]
    syntax_error: SyntaxProblem | None = None
    has_byte_order_mark: bool = field(default=False)

    @staticmethod
    def parse(path: str, text: str, previous: SourceFile | None = None) -> SourceFile:
        """Parse a file block by block. Never raises: see `syntax_error`."""
        marked = text.startswith("\ufeff")
        # CRLF and lone CR end lines for Python and for editors; form feeds do not.
        plain = text[1:] if marked else text
        lines = tuple(re.split(r"\r\n|\r|\n", plain))
        if previous is not None and previous.path == path and previous.blocks:
            blocks = _after_edit(previous, lines)
        else:
            blocks = _all_blocks(lines, _nothing)
        blocks = tuple(b if b.path else replace(b, path=path) for b in blocks)
        file = SourceFile(path, text, lines, blocks, None, marked)
        problem = next(((b, b.problem) for b in blocks if b.problem is not None), None)
        if problem is None:
            return file
        block, (line, column, message) = problem
        at = block.first_line + line - 1
        shift = 1 if marked and at == 1 else 0
        span = SourceSpan(path, at, column + shift, at, column + shift + 1)
        return SourceFile(path, text, lines, blocks, SyntaxProblem(span, message), marked)

    def mended_lines(self) -> frozenset[int]:
        """Lines that are half typed, so that what is known of them is of other text."""
        return frozenset(b.first_line + line - 1 for b in self.blocks for line in b.mended)

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
        first, last = block.file_line(line), block.file_line(end_line)
        if self.has_byte_order_mark and block.path == self.path:
            column += first == 1
            end_column += last == 1
        return SourceSpan(block.path, first, column, last, end_column)


def _all_blocks(lines: tuple[str, ...], was: Was) -> tuple[Block, ...]:
    tree = parse("\n".join(lines))
    if isinstance(tree, ast.Module):
        return _blocks_of(lines, tree)
    return _blocks_by_indent(lines, 1, was)


def _blocks_of(lines: tuple[str, ...], tree: ast.Module) -> tuple[Block, ...]:
    """One block for each run of statements that share no line with the next."""
    blocks: list[Block] = []
    group: list[ast.stmt] = []
    start = end = 0
    for statement in tree.body:
        first = _first_line(statement)
        if group and first > end:
            blocks.append(_block_from(lines, start, end, group))
            group = []
        if not group:
            start = first
        group.append(statement)
        end = statement.end_lineno or statement.lineno
    if group:
        blocks.append(_block_from(lines, start, end, group))
    return tuple(blocks)


def _block_from(lines: tuple[str, ...], start: int, end: int, body: list[ast.stmt]) -> Block:
    own = lines[start - 1 : end]
    return Block("\n".join(own), start, tuple(body), own, None, start)


def _first_line(statement: ast.stmt) -> int:
    decorators: list[ast.expr] = getattr(statement, "decorator_list", [])
    return min([statement.lineno, *(d.lineno for d in decorators)])


def _blocks_by_indent(lines: tuple[str, ...], first_line: int, was: Was) -> tuple[Block, ...]:
    """Blocks of a text that does not parse as a whole: split where a line starts at column 0."""
    starts = [
        i
        for i, line in enumerate(lines)
        if line and not _CONTINUES.match(line) and not (i and lines[i - 1].startswith("@"))
    ]
    first = next((i for i, line in enumerate(lines) if not _EMPTY.match(line)), len(lines))
    if first < min([*starts, len(lines)]):
        starts.insert(0, first)
    blocks: list[Block] = []
    at = 0
    while at < len(starts):
        start = starts[at]
        step, block = 1, None
        broken: tuple[tuple[str, ...], SyntaxError] | None = None
        # Text at column 0 within a string or brackets belongs to what came before it.
        for count in range(1, min(_MOST_MERGES, len(starts) - at) + 1):
            end = starts[at + count] if at + count < len(starts) else len(lines)
            piece = lines[start:end]
            tree = parse("\n".join(piece))
            if isinstance(tree, ast.Module):
                step = count
                block = Block("\n".join(piece), first_line + start, tuple(tree.body), piece)
                break
            broken = broken or (piece, tree)
            if count == 1 and not _is_open(tree):
                break
        if block is None and broken is not None:
            block = _repaired(*broken, first_line + start, was(first_line + start))
        if block is not None:
            blocks.append(block)
        at += step
    return tuple(blocks)


def _is_open(error: SyntaxError) -> bool:
    """Whether more text could still make it right."""
    message = error.msg or ""
    return "never closed" in message or "unterminated triple" in message or "EOF" in message


def _repaired(
    lines: tuple[str, ...], error: SyntaxError, first_line: int, previous: Block | None
) -> Block:
    """The block with something else in place of its broken lines."""
    good = () if previous is None else previous.good if previous.problem else previous.lines
    reading = read(lines, error, good)
    text = "\n".join(lines)
    return Block(
        text, first_line, reading.body, lines, reading.problem, good=good, mended=reading.mended
    )


def _after_edit(previous: SourceFile, lines: tuple[str, ...]) -> tuple[Block, ...]:
    """Blocks of an edited file: those that the edit did not touch are taken over."""
    old = previous.lines
    if old == lines:
        return previous.blocks
    same_before, most = 0, min(len(old), len(lines))
    while same_before < most and old[same_before] == lines[same_before]:
        same_before += 1
    same_after = 0
    while same_after < most - same_before and old[-1 - same_after] == lines[-1 - same_after]:
        same_after += 1
    moved_by = len(lines) - len(old)
    # A block is kept if it and the line after it (`else:` could appear there) are unchanged.
    before = [b for b in previous.blocks if b.first_line + len(b.lines) <= same_before]
    after = [b for b in previous.blocks if b.first_line > len(old) - same_after + 1]
    start = before[-1].first_line + len(before[-1].lines) if before else 1
    first = next((line for line in lines[start - 1 :] if not _EMPTY.match(line)), "")
    if before and _CONTINUES.match(first):
        start = before.pop().first_line
    end = after[0].first_line + moved_by - 1 if after else len(lines)
    last = next((line for line in reversed(lines[start - 1 : end]) if not _EMPTY.match(line)), "")
    if after and last.startswith("@"):
        end = after[0].first_line + moved_by + len(after.pop(0).lines) - 1
    between = lines[start - 1 : end]
    tree = parse("\n".join(between))
    by_line = {b.first_line: b for b in previous.blocks}

    def was(first_line: int) -> Block | None:
        moved = 0 if first_line <= same_before + 1 else moved_by
        return by_line.get(first_line - moved)

    if isinstance(tree, ast.Module):
        changed = tuple(b.moved_to(b.first_line + start - 1) for b in _blocks_of(between, tree))
    elif _may_close(tree) and any(b.problem for b in (*before, *after)):
        return _all_blocks(lines, was)
    else:
        changed = _blocks_by_indent(between, start, was)
    return (*before, *changed, *(b.moved_to(b.first_line + moved_by) for b in after))


def _may_close(error: SyntaxError) -> bool:
    """Whether the text may end what another block has open."""
    message = error.msg or ""
    return message.startswith(("unmatched", "closing parenthesis", "unterminated"))


def _nothing(first_line: int) -> None:
    """What stood on a line of a file that was not seen before."""
