"""Reports and tables of Nsight Compute: cut, of other versions, with numbers that are none."""

from __future__ import annotations

import lzma
from functools import cache
from pathlib import Path
from random import Random

import rooflint
from fuzzing import traces
from fuzzing.nasty import NUMBERS, TEXTS, damage_bytes, damage_text
from fuzzing.promises import check_recording, no_fault, refused, soon


def case(dice: Random, folder: Path) -> None:
    """A report or a table, read and shown."""
    if dice.random() < 0.5:
        path = folder / "report.ncu-rep"
        path.write_bytes(_report(dice))
    else:
        path = folder / "table.csv"
        path.write_bytes(_table(dice))
    with no_fault(), soon():
        recording = refused(lambda: rooflint.read_recording(path))
        if recording is not None:
            check_recording(recording, folder)


def _report(dice: Random) -> bytes:
    data = dice.choice(_reports())
    if dice.random() < 0.2:
        return data[: dice.randrange(len(data) + 1)]
    if dice.random() < 0.1:
        return data[:4] + dice.randbytes(dice.choice((0, 4, 100, 5_000)))
    data = damage_bytes(dice, data, dice.choice((1, 3, 30)))
    return lzma.compress(data, preset=0) if dice.random() < 0.1 else data


def _table(dice: Random) -> bytes:
    text = dice.choice(_tables())
    lines = text.split("\n")
    for _ in range(dice.choice((1, 3, 30))):
        at = dice.randrange(len(lines))
        cells = lines[at].split('","')
        cells[dice.randrange(len(cells))] = str(dice.choice(NUMBERS + TEXTS))
        lines[at] = '","'.join(cells)
    text = "\n".join(lines)
    if dice.random() < 0.3:
        text = damage_text(dice, text, dice.choice((1, 5)))
    if dice.random() < 0.2:
        text = text.replace('","', dice.choice(('";"', '"\t"', ",", '"",""')))
    data = text.encode(dice.choice(("utf-8", "utf-8", "utf-16", "cp1252")), "replace")
    return damage_bytes(dice, data, 3) if dice.random() < 0.2 else data


@cache
def _reports() -> tuple[bytes, ...]:
    found = (path for folder in traces.FOLDERS for path in sorted(folder.rglob("*.ncu-rep*")))
    return tuple(
        lzma.decompress(path.read_bytes()) if path.suffix == ".xz" else path.read_bytes()
        for path in found
    )


@cache
def _tables() -> tuple[str, ...]:
    found = (path for folder in traces.FOLDERS for path in sorted(folder.rglob("*.csv")))
    return tuple(path.read_text("utf-8", "replace") for path in found)
