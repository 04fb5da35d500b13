"""Half-typed text: what to read in place of the lines that are not Python yet.

Lines keep their places, so that all that is said of the others stays right. What the text was
when it last parsed comes first; else what was typed so far, closed; else nothing.
"""

from __future__ import annotations

import ast
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence

from rooflint.literals import WORTH_IT, without_long_tables
from rooflint.plain import plain

TOO_DEEP = "the statement is nested too deeply to be read"

# Compiled where they are first used: most files are Python as they stand.
_HEADER = r"(?:async\s+)?(?:def|class|if|elif|else|for|while|with|try|except|finally|match|case)\b"
_TARGET = r"(?:[\w.]+\s*,\s*)*[\w.]+\s*=(?!=)|return\b"
_DANGLING = r"(?:[.,=+\-*/%&|^<>@~]|(?:dna|ro|ton|ni|si|fi|esle|adbmal)\b|\s)*"
"""Read backwards, from the end: read forwards it would be tried at every place of a long line."""
_CLOSERS = {"(": ")", "[": "]", "{": "}"}
_TOKEN = (
    r"""\"\"\".*?(?:\"\"\"|$)|'''.*?(?:'''|$)|"(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'?"""
    r"""|\#.*|[()\[\]{}]"""
)
_MOST_REPAIRS = 12
_LONGEST_HEADER = 8
_MOST_COMPARED = 400


@plain
class Reading:
    """What a text was read as."""

    body: tuple[ast.stmt, ...]
    problem: tuple[int, int, str] | None = None
    """Line, column and the parser's message, if the text itself is not Python."""
    mended: frozenset[int] = frozenset()
    """Lines from 1 in whose place other text was read."""


def parse(text: str) -> ast.Module | SyntaxError:
    """The tree of a text, or why it has none."""
    if len(text) > WORTH_IT:
        tree = _parse(without_long_tables(text))
        if isinstance(tree, ast.Module):
            return tree
    return _parse(text)


def _parse(text: str) -> ast.Module | SyntaxError:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(text)
    except SyntaxError as error:
        if (error.msg or "").startswith(("too many nested", "too many statically nested")):
            error.msg = TOO_DEEP
        return error
    except (RecursionError, MemoryError):
        return SyntaxError(TOO_DEEP, (None, 1, 1, None))
    except (ValueError, OverflowError) as error:
        # Null bytes, lone surrogates.
        return SyntaxError(str(error) or type(error).__name__, (None, 1, 1, None))


class Tries:
    """What may be read in vain, by its length: where much is broken, it would never end."""

    def __init__(self, lines: Iterable[str]):
        self._left = _MANY_CHARACTERS + 4 * sum(map(len, lines))

    def are_over(self) -> bool:
        return self._left < 0

    def parse(self, text: str) -> ast.Module | SyntaxError:
        """As `parse`. Raises `_TriesAreOver`."""
        if self.are_over():
            raise _TriesAreOver
        self._left -= len(text) + _LIKE_CHARACTERS
        return parse(text)


_MANY_CHARACTERS = 2_000_000
_LIKE_CHARACTERS = 100
"""Reading something short takes as long as so many characters of something long."""


class _TriesAreOver(Exception):
    pass


def read(
    lines: Sequence[str], error: SyntaxError, good: Sequence[str] = (), tries: Tries | None = None
) -> Reading:
    """A text that is not Python, as what it is about to say.

    `error` is what `parse` says of it, `good` are its lines when it last was Python; `tries` are
    shared with other texts of the file.
    """
    tries = tries or Tries(lines)
    column = max((error.offset or 1) - 1, 0)
    problem = (_line_of(error, lines), column, error.msg or "invalid syntax")
    try:
        work, tree = _put_back(lines, error, good, tries)
        if tree is None:
            work, tree = _mended(lines, error, tries)
    except _TriesAreOver:
        work, tree = [""] * len(lines), None
    changed = (n for n, pair in enumerate(zip(lines, work, strict=True), 1) if pair[0] != pair[1])
    return Reading(tuple(tree.body) if tree else (), problem, frozenset(changed))


def _line_of(error: SyntaxError, lines: Sequence[str]) -> int:
    return min(max(error.lineno or 1, 1), len(lines))


def _put_back(
    lines: Sequence[str], error: SyntaxError, good: Sequence[str], tries: Tries
) -> tuple[list[str], ast.Module | None]:
    """The text with changes undone, that nearest to the error first, until it is Python."""
    work = list(lines)
    changes = _changes(lines, good) if good else []
    while changes:
        at = _line_of(error, work) - 1
        nearest = min(changes, key=lambda c: max(c[0] - at, at - c[1] + 1, 0))
        changes.remove(nearest)
        start, end, old = nearest
        if start == end:
            # Nothing is left of it: the line above takes it.
            start = max(start - 1, 0)
            end, old = start + 1, [work[start], *old] if start < nearest[0] else [*old, work[0]]
        work[start:end] = _fitted(old, end - start)
        tree = tries.parse("\n".join(work))
        if isinstance(tree, ast.Module):
            return work, tree
        error = tree
    return work, None


def _changes(lines: Sequence[str], good: Sequence[str]) -> list[tuple[int, int, list[str]]]:
    """Which lines (from 0) are others now, and what they were."""
    count = len(lines)
    while count and not lines[count - 1].strip():
        count -= 1
    same, most = 0, min(count, len(good))
    while same < most and lines[same] == good[same]:
        same += 1
    tail = 0
    while tail < most - same and lines[count - 1 - tail] == good[-1 - tail]:
        tail += 1
    between, old = lines[same : count - tail], good[same : len(good) - tail]
    if len(between) + len(old) > _MOST_COMPARED:
        return []
    from difflib import SequenceMatcher

    steps = SequenceMatcher(None, between, old, autojunk=False).get_opcodes()
    return [
        (same + start, same + end, list(old[low:high]))
        for kind, start, end, low, high in steps
        # What was pasted is new: there is nothing that it was.
        if kind != "equal" and low < high and end - start <= high - low + 1
    ]


def _fitted(old: Sequence[str], count: int) -> list[str]:
    """Lines as so many lines: more are empty, fewer hold two."""
    joined = len(old) - count + 1
    if joined <= 1:
        return [*old, *[""] * (count - len(old))]
    first = " ".join([old[0].rstrip(), *(line.strip() for line in old[1:joined])])
    return [first, *old[joined:]]


def _mended(
    lines: Sequence[str], error: SyntaxError, tries: Tries
) -> tuple[list[str], ast.Module | None]:
    """The text with something that parses in place of its broken statements."""
    work = list(lines)
    for _ in range(_MOST_REPAIRS):
        repair = _repair_nearby(work, error, tries) or _repair(work, error, tries)
        if repair is None:
            break
        start, put = repair
        work[start : start + len(put)] = put
        tree = tries.parse("\n".join(work))
        if isinstance(tree, ast.Module):
            return work, tree
        error = tree
    return [""] * len(lines), None


def _repair_nearby(
    work: list[str], error: SyntaxError, tries: Tries
) -> tuple[int, list[str]] | None:
    """A repair of the function around the error alone, which takes less time to try."""
    at = _line_of(error, work) - 1
    start = next((n for n in range(at, -1, -1) if _holds(work, n, at)), at)
    end = _end_of(work, start)
    if not start < at < end or end - start > len(work) // 2:
        return None
    around = ["if 1:"] if _depth(work[start]) else []
    function = [*around, *work[start:end]]
    own_error = tries.parse("\n".join(function))
    if isinstance(own_error, ast.Module):
        return None
    repair = _repair(function, own_error, tries)
    if repair is None or repair[0] < len(around):
        return None
    return repair[0] - len(around) + start, repair[1]


def _holds(work: list[str], start: int, at: int) -> bool:
    """Whether a function that starts on a line may hold another line."""
    is_function = re.match(r"\s*(?:async\s+)?def\b", work[start])
    return bool(is_function) and (start == at or _depth(work[start]) < _depth(work[at]))


def _repair(work: list[str], error: SyntaxError, tries: Tries) -> tuple[int, list[str]] | None:
    """Where to put which lines: the first guess that leaves no error, or else the first of those
    that move it furthest."""
    at = _line_of(error, work) - 1
    in_string = "unterminated" in (error.msg or "")
    best, furthest = None, at
    for start, end in _groups(work, at):
        for guess in _guesses(work, start, end, at, error):
            put = [*guess, *[""] * (end - start - len(guess))]
            tree = tries.parse("\n".join([*work[:start], *put, *work[end:]]))
            if isinstance(tree, ast.Module):
                return start, put
            moved_to = _line_of(tree, work) - 1
            if in_string and moved_to < start:
                # Python tells of an open string below before it tells of what is wrong above it.
                return start, put
            if moved_to > max(furthest, end - 1):
                best, furthest = (start, put), moved_to
    return best


def _groups(work: list[str], at: int) -> Iterator[tuple[int, int]]:
    """What a line (from 0) may be part of, as indentation has it: ever more lines."""
    while at > 0 and not work[at].strip():
        at -= 1
    yield at, at + 1
    above = next((n for n in range(at - 1, -1, -1) if work[n].strip()), at)
    ended = work[above].rstrip(" ,")
    if above < at and ended != _without_dangling(ended):
        yield above, above + 1
    start: int | None = at
    while start is not None:
        end = _end_of(work, start)
        if re.match(_HEADER, work[start].strip()):
            for last in range(max(at, start + 1), min(end, start + _LONGEST_HEADER)):
                yield start, last + 1
            if start < at:
                yield start + 1, end
        elif end > at + 1 or start < at:
            yield start, end
        start = _outer(work, start)
    yield 0, len(work)


def _outer(work: list[str], start: int) -> int | None:
    """The line that holds a line: less indented, or the one that opens what it closes."""
    depth = _depth(work[start]) + _closes(work[start])
    for n in range(start - 1, -1, -1):
        if work[n].strip() and _depth(work[n]) < depth:
            return n
    return None


def _end_of(work: list[str], start: int) -> int:
    """Where what starts on a line ends: before the next that is not indented more."""
    depth, end = _depth(work[start]), start + 1
    for n in range(start + 1, len(work)):
        if work[n].strip():
            if _depth(work[n]) < depth + (not _closes(work[n])):
                break
            end = n + 1
    return end


def _closes(line: str) -> bool:
    return line.lstrip().startswith((")", "]", "}"))


def _guesses(
    work: list[str], start: int, end: int, at: int, error: SyntaxError
) -> Iterator[list[str]]:
    """What a group of lines may be about to say, the most of it first."""
    group = work[start:end]
    indent = _indent_of(group[0])
    if start == at and end == at + 1 and "unterminated" in (error.msg or ""):
        group = [_before_string(group[0], error)]
    whole = " ".join(line.strip() for line in group)
    deeper = next((line for line in work[end:] if line.strip()), "")
    opens = _depth(deeper) > _depth(indent + ".")
    if re.match(_HEADER, whole):
        for header in _headers(whole):
            yield [indent + header]
    yield group
    if opens:
        # Without this line, those below it would belong to what stands above.
        if "never closed" not in (error.msg or ""):
            yield [indent + "if 1:"]
        return
    closed, target = _closed(group), re.match(_TARGET, whole)
    yield closed
    if target:
        yield [f"{indent}{target[0]} _"]
    yield [indent + "pass"]
    yield [*closed[:-1], closed[-1] + ","]
    yield [""]


def _before_string(line: str, error: SyntaxError) -> str:
    """What stands before a string that has no end."""
    return re.sub(r"(?<!\w)[rbfuRBFU]{1,2}$", "", line[: max((error.offset or 1) - 1, 0)])


def _headers(broken: str) -> Iterator[str]:
    """What a header that does not parse may be about to say."""
    yield broken + ":"
    yield _closed([broken.rstrip(": .\t")])[0] + ":"
    loop = re.match(r"(?:async\s+)?for\s+(\S.*?)\sin\b", broken)
    if loop:
        yield f"for {loop[1]} in _:"
    for word, whole in (("for", "for _ in _:"), ("while", "while _:"), ("with", "with _:")):
        if re.match(rf"(?:async\s+)?{word}\b", broken):
            yield whole
    name = re.match(r"(?:async\s+)?(def|class)\s+(\w+)", broken)
    if name:
        yield f"def {name[2]}(*_):" if name[1] == "def" else f"class {name[2]}:"
    word = re.match(r"(?:if|elif|else|try|except|finally)\b", broken)
    if word:
        yield word[0] + (" _:" if word[0] in ("if", "elif") else ":")


def _closed(lines: Sequence[str]) -> list[str]:
    """Lines without what hangs at their end, and with their brackets closed."""
    text = _without_dangling("\n".join(lines))
    open_brackets: list[str] = []
    for token in re.findall(_TOKEN, text):
        if token in _CLOSERS:
            open_brackets.append(_CLOSERS[token])
        elif open_brackets and token == open_brackets[-1]:
            open_brackets.pop()
    return (text + "".join(reversed(open_brackets))).split("\n")


def _without_dangling(text: str) -> str:
    """A text without the operators, and the words that want more, at its end."""
    hanging = re.match(_DANGLING, text[::-1])
    return text[: len(text) - hanging.end()] if hanging else text


def _indent_of(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _depth(line: str) -> int:
    return len(_indent_of(line).expandtabs())
