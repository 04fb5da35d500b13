"""Numbers stay with the text that was measured."""

from __future__ import annotations

import random
from hashlib import sha256
from pathlib import Path

from rooflint.model import Device, LineCost, LineReport, Recording, Report, Verdict
from rooflint.remap import follow

SOURCE = """\
import torch

def train(model, batches):
    total = 0.0
    for batch in batches:
        loss = model(batch)
        loss.backward()
        total += loss.item()
    return total
"""
PATH = "/home/user/project/train.py"
ITEM_LINE = 8


def report_of(source: str, *lines: int, path: str = PATH, keep_source: bool = True) -> Report:
    costs = tuple(LineCost(path, line, forward_us=100.0 * line) for line in lines)
    recording = Recording(
        origin="made by hand",
        device=Device("cuda", "NVIDIA H200"),
        steps=(),
        window_us=1e4,
        gpu_busy_us=5e3,
        gpu_span_us=1e4,
        kernel_count=len(lines),
        sync_calls=(),
        copies=(),
        unattributed_us=0.0,
        lines=costs,
        kernels=(),
        source_hashes={path: sha256(source.encode()).hexdigest()},
        sources={path: source} if keep_source else {},
    )
    return Report(
        recording,
        Verdict("unknown", ""),
        tuple(LineReport(path, cost.line, cost=cost) for cost in costs),
        (),
    )


def places(report: Report, text: str, path: str = PATH) -> dict[int, tuple[int, bool]]:
    """Where each measured line is now (by its time, 100 µs times its old number), and if stale."""
    lines = follow(report, {path: text}).get(path, {})
    return {
        round(line.cost.forward_us / 100): (number, line.stale)
        for number, line in lines.items()
        if line.cost
    }


def test_an_unchanged_file_keeps_its_lines():
    assert places(report_of(SOURCE, 6, 8), SOURCE) == {6: (6, False), 8: (8, False)}


def test_lines_move_down_with_what_is_inserted_above():
    edited = SOURCE.replace("import torch\n", "import os\nimport sys\nimport torch\n")
    assert places(report_of(SOURCE, 6, 8), edited) == {6: (8, False), 8: (10, False)}


def test_a_changed_line_is_stale_and_its_neighbours_are_not():
    edited = SOURCE.replace("total += loss.item()", "total += loss.detach()")
    assert places(report_of(SOURCE, 6, 8), edited) == {6: (6, False), 8: (8, True)}


def test_a_deleted_line_vanishes():
    edited = SOURCE.replace("        total += loss.item()\n", "")
    assert places(report_of(SOURCE, 6, 8), edited) == {6: (6, False)}


def test_a_line_replaced_by_something_else_vanishes():
    edited = SOURCE.replace("total += loss.item()", "scheduler.step()")
    assert places(report_of(SOURCE, 6, 8), edited) == {6: (6, False)}


def test_a_line_moved_within_the_file_is_followed():
    moved = SOURCE.replace("        total += loss.item()\n", "").replace(
        "        loss = model(batch)\n",
        "        total += loss.item()\n        loss = model(batch)\n",
    )
    assert places(report_of(SOURCE, 6, 8), moved) == {6: (7, False), 8: (6, False)}


def test_a_line_indented_into_a_new_block_is_stale():
    edited = SOURCE.replace(
        "        total += loss.item()",
        "        if step % 10 == 0:\n            total += loss.item()",
    )
    assert places(report_of(SOURCE, 8), edited) == {8: (9, True)}


def test_an_edited_file_whose_measured_text_is_lost_shows_nothing():
    report = report_of(SOURCE, 6, 8, keep_source=False)
    assert places(report, "\n" + SOURCE) == {}
    assert places(report, SOURCE) == {6: (6, False), 8: (8, False)}


def test_line_ends_alone_change_nothing():
    assert places(report_of(SOURCE, 8), SOURCE.replace("\n", "\r\n")) == {8: (8, False)}


def test_a_form_feed_is_no_line_end():
    source = SOURCE.replace("def train", "\f\ndef train")
    assert places(report_of(source, 9), "\n" + source) == {9: (10, False)}


def test_a_recording_made_elsewhere_is_matched_by_content_then_by_path():
    report = report_of(SOURCE, 8, path="/workspace/project/train.py")
    assert places(report, SOURCE, path="/home/me/project/train.py") == {8: (8, False)}
    assert places(report, "\n" + SOURCE, path="/home/me/project/train.py") == {8: (9, False)}
    windows = report_of(SOURCE, 8, path="C:\\work\\project\\train.py")
    assert places(windows, SOURCE, path="/home/me/project/train.py") == {8: (8, False)}


def test_a_file_of_another_name_gets_nothing():
    assert places(report_of(SOURCE, 8), SOURCE + "\n", path="/home/user/project/eval.py") == {}


def test_a_recorded_file_that_is_still_there_is_no_other_of_its_name(tmp_path: Path):
    recorded, other = tmp_path / "train.py", tmp_path / "old" / "train.py"
    recorded.write_text(SOURCE)
    report = report_of(SOURCE, ITEM_LINE, path=str(recorded))
    assert places(report, SOURCE + "# an older copy\n", str(other)) == {}


def test_another_file_of_that_name_elsewhere_gets_nothing():
    report = report_of(SOURCE, ITEM_LINE, path="/workspace/project/train.py")
    other = "import torch\n\ndef evaluate(x):\n    y = x + 1\n        total += loss.item()\n"
    assert places(report, other, path="/home/me/other/train.py") == {}


def test_a_path_that_could_be_two_recorded_files_gets_nothing():
    report = report_of(SOURCE, 8, path="/a/train.py")
    twin = report_of(SOURCE, 8, path="/b/train.py")
    both = Report(report.recording, report.step, (*report.lines, *twin.lines), ())
    assert follow(both, {"/c/train.py": SOURCE + "\n"}) == {}


def test_no_line_is_ever_shown_on_another_text():
    """Random edits of a file of which every line is measured: text stays with its numbers."""
    random.seed(1)
    source = "".join(f"    x{n % 40} = f(x{n % 7}, {n % 90})\n" for n in range(400))
    before = source.split("\n")
    report = report_of(source, *range(1, 401))
    for _ in range(20):
        after = list(before)
        for _ in range(12):
            at = random.randrange(len(after))
            if random.random() < 0.5:
                del after[at]
            else:
                after.insert(at, f"    y = g({random.random()})")
        for was, (now, stale) in places(report, "\n".join(after)).items():
            assert stale or before[was - 1] == after[now - 1]


def test_over_a_history_of_edits_no_number_leaves_its_text():
    """Inserting, deleting, changing and moving lines, over and over: a number that is not stale
    stands on the very text that was measured, and no two stand on one line."""
    random.seed(2)
    before = [f"    x{n} = f(x{n % 7}, {n % 50})" for n in range(60)] + ["    loss.item()"] * 3
    report = report_of("\n".join(before), *range(1, len(before) + 1))
    after = list(before)
    for _ in range(200):
        at, other = random.randrange(len(after)), random.randrange(len(after))
        match random.randrange(4):
            case 0:
                after.insert(at, random.choice([*before, f"    y = g({random.random()})"]))
            case 1 if len(after) > 20:
                del after[at]
            case 2:
                after[at] += f" + {random.randrange(9)}"
            case _:
                after.insert(other, after.pop(at))
        now = places(report, "\n".join(after))
        assert len({line for line, _ in now.values()}) == len(now)
        for was, (line, stale) in now.items():
            assert stale or before[was - 1] == after[line - 1]


def test_a_renamed_file_is_followed_while_its_text_is_mostly_the_same(tmp_path: Path):
    report = report_of(SOURCE, ITEM_LINE, path=str(tmp_path / "train.py"))
    renamed, edited = str(tmp_path / "fit.py"), SOURCE.replace("import torch", "import torch, os")
    assert places(report, SOURCE, renamed) == {8: (8, False)}
    assert places(report, edited, renamed) == {8: (8, False)}
    assert places(report, "import torch\n\nprint(torch.ones(1).item())\n", renamed) == {}
    (tmp_path / "train.py").write_text(SOURCE)
    assert places(report, edited, renamed) == {}


def test_a_long_file_with_an_edit_at_both_ends_is_followed():
    lines = []
    for n in range(2750):
        lines += [f"def f{n}(x):", "", f"    return x + {n}", ""]
    source = "\n".join(lines)
    report = report_of(source, *range(1, 11_000, 100))
    moved = places(report, "import os\n" + source.replace("x + 2749", "x - 2749"))
    assert moved[10_901] == (10_902, False)
