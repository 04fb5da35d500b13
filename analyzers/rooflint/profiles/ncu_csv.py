"""Reads the tables that `ncu --csv` prints: the raw page and the details page."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path

from rooflint.model import ProfileError
from rooflint.profiles.counters import MOST, OWN, Dim3, Launch, is_wanted, to_base_unit
from rooflint.profiles.streams import read_all

Row = dict[str, str]
_MOST_BYTES = 256 << 20
"""Its cells take ten times as much memory."""


def read_csv(path: Path) -> list[Launch]:
    """All kernel launches of a CSV file."""
    return parse_csv(read_all(path, _MOST_BYTES), str(path))


def parse_csv(data: bytes, path: str) -> list[Launch]:
    """Launches from a table, whatever the program and ncu printed around it."""
    text = _decode(data)
    header, cells = _table(text)
    if not header:
        raise ProfileError(_no_table(text, path))
    rows = [dict(zip(header, row, strict=True)) for row in cells]
    if {"Metric Name", "Metric Unit", "Metric Value"} <= set(header):
        number = _reader(row["Metric Value"] for row in rows)
        launches = list(_details(rows, number))
    else:
        number = _reader(cell for row in rows for name, cell in row.items() if is_wanted(name))
        launches = list(_raw(rows, number))
    if not launches:
        raise ProfileError(
            f"{path} has the heading of an ncu table but no kernel in it: "
            "profile at least one launch."
        )
    return launches


def _decode(data: bytes) -> str:
    """UTF-8, or what a Windows shell makes of `>`: UTF-16 with its mark."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace")
    return data.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace")


def _table(text: str) -> tuple[list[str], list[list[str]]]:
    """The heading and its rows; what ncu and the program print is passed over.

    On the details page a metric's row ends behind its value, though columns for rules follow.
    """
    lines = iter(text.splitlines())
    header: list[str] = []
    separator = ","
    for line in lines:
        for separator in ",;\t":  # spreadsheets of some countries save with semicolons
            cells = [cell.strip() for cell in _split(line, separator)]
            if "Kernel Name" in cells and "ID" in cells:
                header = cells
                break
        if header:
            break
    value = "Metric Value"
    needed = header.index(value) + 1 if value in header else len(header)
    rows: list[list[str]] = []
    pending = ""
    for line in lines:
        if not pending and line.startswith("=="):
            continue
        pending = f"{pending}\n{line}" if pending else line
        if pending.startswith('"') and pending.count('"') % 2:
            continue  # a text that goes on in the next line
        cells = _split(pending, separator)
        pending = ""
        if needed <= len(cells) and not any(cells[len(header) :]):
            rows.append((cells + [""] * (len(header) - len(cells)))[: len(header)])
    return header, rows


def _split(line: str, separator: str) -> list[str]:
    try:
        return [cell for cells in csv.reader([line], delimiter=separator) for cell in cells]
    except csv.Error:
        return []


def _no_table(text: str, path: str) -> str:
    if "ERR_NVGPUCTRPERM" in text:
        return (
            f"{path} has no counters: ncu was not permitted to read them (ERR_NVGPUCTRPERM); "
            "see https://developer.nvidia.com/ERR_NVGPUCTRPERM for how an administrator permits it."
        )
    if "No kernels were profiled" in text:
        return f"{path} has no kernels: ncu profiled none; check its filters and profile again."
    return (
        f"{path} is neither a torch.profiler trace nor an ncu report or table: "
        "print one with `ncu --csv --page raw`."
    )


def _details(rows: Iterable[Row], number: Reader) -> Iterator[Launch]:
    """One row a metric; a launch is what has one process and ID."""
    launches: dict[tuple[str, str], list[Row]] = {}
    for row in rows:
        launches.setdefault((row.get("Process ID", ""), row["ID"]), []).append(row)
    for own in launches.values():
        metrics: dict[str, float] = {}
        for row in own:
            name = _metric(row.get("Section Name", ""), row["Metric Name"], row["Metric Unit"])
            value = number(row["Metric Value"])
            if name and value is not None and is_wanted(name):
                metrics[name] = to_base_unit(value, row["Metric Unit"])
        sm_count = next((row["Metric Value"] for row in own if row["Metric Name"] == "# SMs"), "")
        yield _launch({f"{_DEVICE}multiprocessor_count": sm_count, **own[0]}, metrics, number)


def _raw(rows: list[Row], number: Reader) -> Iterator[Launch]:
    """One row a launch; the first row has the units."""
    units: Row = {}
    if rows and not rows[0]["ID"].strip():
        units, rows = rows[0], rows[1:]
    for row in rows:
        metrics = {
            name: to_base_unit(value, units.get(name, ""))
            for name, cell in row.items()
            if is_wanted(name) and (value := number(cell)) is not None
        }
        yield _launch(row, metrics, number)


_DEVICE = "device__attribute_"


def _launch(row: Row, metrics: Mapping[str, float], number: Reader) -> Launch:
    def attribute(name: str) -> int | None:
        value = number(row.get(f"{_DEVICE}{name}", ""))
        return None if value is None or value >= 2**60 else int(value)

    capability = re.fullmatch(r"(\d{1,3})\.(\d{1,3})", row.get("CC", "").strip())
    return Launch(
        name=row["Kernel Name"],
        grid=_dim3(row.get("Grid Size", "")),
        block=_dim3(row.get("Block Size", "")),
        metrics=metrics,
        ranges=tuple(
            name
            for column, cell in row.items()
            if "Push/Pop_Range" in column
            for name in _ranges(cell)
        ),
        device=row.get(f"{_DEVICE}display_name") or None,
        compute_capability=(int(capability[1]), int(capability[2])) if capability else None,
        sm_count=attribute("multiprocessor_count"),
        memory_bytes=attribute("total_memory"),
    )


_RANGE = re.compile(r'"([^":]*):((?:[^"]|"")*)"')
_NO_PAYLOAD = re.compile(r"(.*?):none:none:.*")


def _ranges(cell: str) -> list[str]:
    """Names of the ranges in a cell: a thread, and for each range, quoted and outermost first,
    `domain:name:payload type:payload:color type:color:message type:message`."""
    outer: list[str] = []
    own: list[str] = []
    for domain, rest in _RANGE.findall(cell):
        plain = _NO_PAYLOAD.fullmatch(rest)
        name = plain[1] if plain else rest.rsplit(":", 6)[0]
        if domain == OWN:
            own.append(f"{OWN} {name}")
        else:
            outer.append(name)
    return outer + own


# What the details page calls the metrics of its sections; a percentage and a rate may share a name.
_LABELS = {
    ("Duration", ""): "gpu__time_duration.sum",
    ("Compute (SM) Throughput", ""): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ("Compute (SM) [%]", ""): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SM [%]", ""): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL SM", ""): "sm__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL FB", ""): "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL DRAM", ""): "dram__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL L2", ""): "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL L2 Cache", ""): "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL TEX", ""): "l1tex__throughput.avg.pct_of_peak_sustained_active",
    ("SOL L1/TEX Cache", ""): "l1tex__throughput.avg.pct_of_peak_sustained_active",
    ("Memory Throughput", "%"): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ("Memory [%]", ""): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ("SOL Memory", ""): "gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed",
    ("DRAM Throughput", "%"): "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
    ("L2 Cache Throughput", "%"): "lts__throughput.avg.pct_of_peak_sustained_elapsed",
    ("L1/TEX Cache Throughput", "%"): "l1tex__throughput.avg.pct_of_peak_sustained_active",
    ("Achieved Occupancy", ""): "sm__warps_active.avg.pct_of_peak_sustained_active",
    ("Theoretical Occupancy", ""): "sm__maximum_warps_per_active_cycle_pct",
    ("Registers Per Thread", ""): "launch__registers_per_thread",
    ("Waves Per SM", ""): "launch__waves_per_multiprocessor",
    ("Block Limit Registers", ""): "launch__occupancy_limit_registers",
    ("Block Limit Shared Mem", ""): "launch__occupancy_limit_shared_mem",
    ("Block Limit Warps", ""): "launch__occupancy_limit_warps",
    ("Block Limit SM", ""): "launch__occupancy_limit_blocks",
    ("Block Limit Barriers", ""): "launch__occupancy_limit_barriers",
}


def _metric(section: str, label: str, unit: str) -> str | None:
    """The metric behind a row: its own name, or what the label of a section stands for."""
    if "__" in label:
        return label
    if label == "Memory Throughput" and "/" in unit:
        return "dram__bytes.sum.per_second"
    return _LABELS.get((label, unit)) or _LABELS.get((label, ""))


Reader = Callable[[str], float | None]

# What is a decimal point for certain: other than three digits follow, or the other mark came
# before; marks that occur twice part thousands.
_POINT = re.compile(r"-?[\d,]*\.(?:\d{1,2}|\d{4,})|-?\d[\d,]*,\d{3}\.\d+|-?\d{1,3}(?:,\d{3}){2,}")
_COMMA = re.compile(r"-?[\d.]*,(?:\d{1,2}|\d{4,})|-?\d[\d.]*\.\d{3},\d+|-?\d{1,3}(?:\.\d{3}){2,}")
_MAYBE_COMMA = re.compile(r"-?0,\d{3}|-?\d{4,},\d{3}")
_SPACES = re.compile(r"[\s\u00a0\u202f\u2019'\ufffd]")
"""Between thousands in French and Swiss; what no UTF-8 is was a space of Windows'."""


def _reader(cells: Iterable[str]) -> Reader:
    """Reads numbers as the locale that printed this file writes them.

    `9,589` is nine thousand or nine: the numbers of a file are of one kind, so one that can only
    be read one way decides.
    """
    comma = False
    for cell in cells:
        text = _SPACES.sub("", cell)
        if _POINT.fullmatch(text):
            comma = False
            break
        if _COMMA.fullmatch(text):
            comma = True
            break
        comma = comma or bool(_MAYBE_COMMA.fullmatch(text))

    def number(cell: str) -> float | None:
        text = _SPACES.sub("", cell)
        text = text.replace(".", "").replace(",", ".") if comma else text.replace(",", "")
        try:
            value = float(text)
        except ValueError:
            return None
        return value if 0 <= value < MOST else None

    return number


def _dim3(text: str) -> Dim3 | None:
    """`(64, 64, 1)`; some versions leave out the parentheses or the ones."""
    numbers = [int(part) for part in re.findall(r"\d+", text[:99])]
    if not 1 <= len(numbers) <= 3:
        return None
    x, y, z = (*numbers, 1, 1)[:3]
    return x, y, z
