"""Carries a report's lines through edits of the files.

A number belongs to the text that was measured. While a file is as it was run, lines keep their
place; when it was edited, they follow their text, and a line whose text was changed is stale.
Where the measured text is not known, an edited file shows nothing rather than a wrong line.
"""

from __future__ import annotations

import ntpath
import os
import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from hashlib import sha256
from pathlib import Path, PurePath

from rooflint.model import Finding, LineReport, Recording, Report
from rooflint.profiles.adopted import common_end

Place = tuple[int, bool]
"""A line's place in the edited text, and whether the line itself was changed."""


@dataclass(frozen=True, slots=True)
class FollowedFile:
    """A recorded file as its text stands now."""

    path: str
    recorded_path: str
    source: str | None
    """The text that was measured; `None`: it was not kept, and is not the present one."""
    lines: Mapping[int, LineReport]
    """What was measured, by present line."""
    places: Mapping[int, Place] | None
    """Where each recorded line is now; `None`: all where they were."""

    @property
    def is_lost(self) -> bool:
        """Whether the text is another one, and what was measured cannot be told."""
        return self.source is None

    def line(self, recorded: int) -> int | None:
        """Where a recorded line is now."""
        if self.places is None:
            return recorded
        return self.places[recorded][0] if recorded in self.places else None


def follow(report: Report, texts: Mapping[str, str]) -> dict[str, dict[int, LineReport]]:
    """The report's lines by path and line as the files stand now; changed lines are `stale`."""
    files = {path: follow_file(report, path, text) for path, text in texts.items()}
    return {path: dict(file.lines) for path, file in files.items() if file}


def follow_file(report: Report, path: str, text: str) -> FollowedFile | None:
    """What was measured of a file as its text stands now; `None`: it was not recorded."""
    recorded = find_in_report(path, text, report)
    if recorded is None:
        return None
    places = _places(recorded, text, report.recording)
    source = text if places is None else report.recording.sources.get(recorded)
    measured = [line for line in report.lines if line.path == recorded]
    return FollowedFile(path, recorded, source, dict(_move(measured, path, places)), places)


def find_in_report(path: str, text: str, report: Report) -> str | None:
    """Which of a report's files this is; `None`: it was not recorded."""
    recording = report.recording
    known = {**{line.path: "" for line in report.lines}, **recording.source_hashes}
    return find_recorded_path(path, text, known, recording.sources)


def find_recorded_path(
    path: str, text: str, hashes: Mapping[str, str], sources: Mapping[str, str]
) -> str | None:
    """Which of the recorded files this is: by its path, its content, the end of its path, or, if
    it was renamed, by having most of its lines.

    `hashes`: SHA-256 of the recorded files, by path; `sources`: their texts, where they are known.
    """
    if path in hashes:
        return path
    # An editor on Windows says c:\train.py to what Python has recorded as C:\train.py.
    named = os.path.normcase(path)
    for other in hashes:
        if os.path.normcase(other) == named:
            return other
    digest = digest_of(text)
    same = [other for other, known_digest in hashes.items() if known_digest == digest]
    # A file that is still there is itself: pkg/utils.py is not the recorded utils.py.
    gone = [other for other in same or hashes if not _is_there(other, path)]
    # A recording made elsewhere (a container, a cluster) has other folders above the project.
    scored = [(length, other) for other in same or gone if (length := common_end(path, other))]
    best = max((length for length, _ in scored), default=0)
    candidates = [other for length, other in scored if length == best]
    if not candidates:
        here = [other for other in gone if _is_there(str(PurePath(other).parent), path)]
        candidates = [other for other in here if same or _is_alike(sources.get(other, ""), text)]
    if len(candidates) != 1:
        return None
    (found,) = candidates
    # Another file may be called the same, as many are called utils.py.
    is_other = not same and found in sources and not _is_alike(sources[found], text)
    return None if is_other else found


def _is_there(recorded: str, beside: str) -> bool:
    """Whether a recorded file or folder is on this machine.

    One on a server is asked for only beside a file that is there: asking is to log in.
    """
    server, _ = ntpath.splitdrive(recorded)
    if server[:2] in (r"\\", "//") and server != ntpath.splitdrive(beside)[0]:
        return False
    try:
        return Path(recorded).exists()
    except OSError:  # A name that no file can have.
        return False


def names_in_folders(paths: Iterable[str]) -> Mapping[str, Set[str]]:
    """What the folders of files would list, were there no other files."""
    names: dict[str, set[str]] = {}
    for path in map(PurePath, paths):
        for one in (path, *path.parents):
            names.setdefault(str(one.parent), set()).add(one.name)
    return names


def lines_in(recorded: str, text: str, recording: Recording) -> Callable[[int], Place | None]:
    """Where a recorded file's lines are in a text; `None`: the line is gone."""
    places = _places(recorded, text, recording)
    return (lambda line: (line, False)) if places is None else places.get


ALIKE_RATIO = 0.6
"""A file that has so much of another's lines, which is gone, is that file, edited."""


def _is_alike(source: str, text: str) -> bool:
    before, after = _counted(source), _counted(text)
    longer = max(before.total(), after.total())
    return longer > 0 and (before & after).total() >= ALIKE_RATIO * longer


def _counted(text: str) -> Counter[str]:
    return Counter(line for each in _split(text) if (line := each.strip()))


def match_files(
    recording: Recording, texts: Mapping[str, str]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """The file that each recorded one is, by recorded path; and the recorded files that are none
    of these, whose lines are shown nowhere."""
    matched: dict[str, str] = {}
    for path, text in texts.items():
        recorded = find_recorded_path(path, text, recording.source_hashes, recording.sources)
        if recorded is not None:
            matched.setdefault(recorded, path)
    # A trace of torch.profiler names files without having them.
    recorded_paths = dict.fromkeys([*recording.source_hashes, *(c.path for c in recording.lines)])
    return matched, tuple(path for path in recorded_paths if path not in matched)


def _places(recorded: str, text: str, recording: Recording) -> Mapping[int, Place] | None:
    """Where each recorded line is now; `None`: all where they were."""
    known_digest = recording.source_hashes.get(recorded)
    source = recording.sources.get(recorded)
    if known_digest is not None and known_digest == digest_of(text):
        return None
    if source is None:
        return {}
    before, after = _split(source), _split(text)
    return None if before == after else dict(_follow_lines(before, after))


def _follow_lines(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, Place]]:
    """Pairs of old and new line numbers, from 1."""
    # Most edits are in one place: what is the same at both ends needs no matching.
    start = _common(before, after)
    end = _common(before[start:][::-1], after[start:][::-1])
    for index in range(start):
        yield index + 1, (index + 1, False)
    for index in range(end):
        yield len(before) - index, (len(after) - index, False)
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    for was, (now, changed) in _follow_edited(old, new):
        yield start + was + 1, (start + now + 1, changed)


def _common(before: Sequence[str], after: Sequence[str]) -> int:
    """How many lines at the start are the same."""
    pairs = enumerate(zip(before, after, strict=False))
    return next((i for i, (was, now) in pairs if was != now), min(len(before), len(after)))


def _follow_edited(before: Sequence[str], after: Sequence[str]) -> Iterator[tuple[int, Place]]:
    """Pairs of places in the edited part, from 0."""
    old, new = [line.strip() for line in before], [line.strip() for line in after]
    lost: list[int] = []
    added: list[int] = []
    for i, j, i_end, j_end in _gaps(old, new):
        blocks = SequenceMatcher(None, old[i:i_end], new[j:j_end], autojunk=False)
        for tag, i1, i2, j1, j2 in blocks.get_opcodes():
            if tag == "equal":
                for place in range(i2 - i1):
                    was, now = i + i1 + place, j + j1 + place
                    yield was, (now, before[was].rstrip() != after[now].rstrip())
                continue
            pairs = list(_pair_changed(old[i + i1 : i + i2], new[j + j1 : j + j2]))
            for was, now in pairs:
                yield i + i1 + was, (j + j1 + now, True)
            lost += sorted(set(range(i + i1, i + i2)) - {i + i1 + was for was, _ in pairs})
            added += sorted(set(range(j + j1, j + j2)) - {j + j1 + now for _, now in pairs})
    for was, now in _pair_moved(old, lost, new, added):
        yield was, (now, before[was].rstrip() != after[now].rstrip())


def _gaps(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int, int, int]]:
    """The pieces between lines that stand once in either text and in the same order.

    Such a line is the same line for certain, and what is left between two of them is small:
    difflib alone takes seconds for a long file with an edit at both ends.
    """
    i = j = 0
    for was, now in _anchors(old, new):
        yield i, j, was, now
        yield was, now, was + 1, now + 1
        i, j = was + 1, now + 1
    yield i, j, len(old), len(new)


def _anchors(old: Sequence[str], new: Sequence[str]) -> list[tuple[int, int]]:
    """The longest run of unique common lines that rises in both texts (patience diff)."""
    places = _unique(new)
    pairs = [(i, places[line]) for line, i in _unique(old).items() if line in places]
    tails: list[int] = []
    ends: list[int] = []
    before: list[int | None] = []
    for index, (_, now) in enumerate(pairs):
        length = bisect_left(tails, now)
        tails[length : length + 1] = [now]
        ends[length : length + 1] = [index]
        before.append(ends[length - 1] if length else None)
    rising: list[tuple[int, int]] = []
    last = ends[-1] if ends else None
    while last is not None:
        rising.append(pairs[last])
        last = before[last]
    return rising[::-1]


def _unique(lines: Sequence[str]) -> dict[str, int]:
    """Each line that stands once, and where."""
    counts = Counter(lines)
    return {line: index for index, line in enumerate(lines) if counts[line] == 1}


SIMILAR_RATIO = 0.6
"""Two lines with this much in common are one line, edited (difflib's own rule of thumb)."""

MOST_PAIRS = 2_500
"""Blocks with more pairs to compare than this were rewritten, not edited."""


def _pair_changed(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[int, int]]:
    """Each changed line with what it became, in order; both texts without their indentation."""
    if len(old) * len(new) > MOST_PAIRS:
        return
    first = 0
    for i, line in enumerate(old):
        ratios = [(_likeness(line, new[j]), -j) for j in range(first, len(new))]
        ratio, place = max(ratios, default=(0.0, 0))
        if ratio >= SIMILAR_RATIO:
            yield i, -place
            first = -place + 1


def _likeness(line: str, other: str) -> float:
    return SequenceMatcher(None, line, other, autojunk=False).ratio() if line and other else 0.0


def _pair_moved(
    old: Sequence[str], lost: Sequence[int], new: Sequence[str], added: Sequence[int]
) -> Iterator[tuple[int, int]]:
    """Lines that vanished here and appeared there, if their text can be no other line's."""
    appeared: dict[str, list[int]] = {}
    for j in added:
        appeared.setdefault(new[j], []).append(j)
    vanished: dict[str, list[int]] = {}
    for i in lost:
        vanished.setdefault(old[i], []).append(i)
    for text, places in vanished.items():
        others = appeared.get(text, [])
        if text and len(places) == 1 and len(others) == 1:
            yield places[0], others[0]


def _move(
    lines: Sequence[LineReport], path: str, places: Mapping[int, Place] | None
) -> Iterator[tuple[int, LineReport]]:
    for line in lines:
        if places is None:
            place = (line.line, line.stale)
        elif line.line in places:
            place = places[line.line]
        else:
            continue
        yield place[0], _moved(line, path, *place)


def _moved(line: LineReport, path: str, number: int, stale: bool) -> LineReport:
    if (line.path, line.line, line.stale) == (path, number, stale):
        return line
    cost = replace(line.cost, path=path, line=number) if line.cost else None
    # Its kernels, which may be thousands, keep the place where they were recorded.
    return replace(
        line,
        path=path,
        line=number,
        # A finding is about the text: of a changed line it may no longer be true.
        findings=() if stale else tuple(_shift(f, path, number) for f in line.findings),
        cost=cost,
        stale=stale,
    )


def _shift(finding: Finding, path: str, number: int) -> Finding:
    """A finding of an unchanged line, where the line is now; its fix was made for the old text."""
    down = number - finding.span.line
    span = replace(
        finding.span,
        path=path,
        line=finding.span.line + down,
        end_line=finding.span.end_line + down,
    )
    return replace(finding, span=span, fixes=(), because=())


def _split(text: str) -> list[str]:
    """Lines as Python and editors count them: a form feed ends none."""
    return re.split(r"\r\n|\r|\n", text.removeprefix("\ufeff"))


def digest_of(text: str) -> str:
    """SHA-256 of a file of this text."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
