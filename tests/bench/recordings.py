"""Reading recordings against a typed decode of the same file by msgspec, which keeps every event.

python tests/bench/recordings.py [--events N] [--json] [TRACE ...]

Without traces, one of N events (a million) is made of the recording in tests/, which an H200 ran,
as if it had gone on.
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

if __package__:
    from .peers import HTA
    from .timing import Row, Spent, in_turn, medians, rooflint, row, spent
else:
    sys.path.insert(0, str(Path(__file__).parents[2]))
    from tests.bench.peers import HTA
    from tests.bench.timing import Row, Spent, in_turn, medians, rooflint, row, spent

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests" / "profiles" / "recordings" / "line_trace.json.gz"


def measure(runs: int, events: int = 1_000_000) -> Iterator[Row]:
    """All that is said of recordings."""
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "trace.json"
        # By another process: what it needs would count as memory of those that are started here.
        spent([*worker("make", trace), "--events", str(events)])
        yield from of_trace(trace, f"{events:,} events", runs)
    with tempfile.TemporaryDirectory() as name:
        trace = Path(name) / "trace.json"
        spent([*worker("make", trace), "--events", str(5 * events)])
        read = spent(worker("read", trace))
        yield row(f"all of {5 * events:,} events, memory", read.peak_mib, "MiB")


def of_trace(trace: Path, what: str, runs: int) -> Iterator[Row]:
    """One trace, which stands alone in its folder; what is kept of it is left there."""
    packed = trace.with_suffix(".json.gz")
    if not packed.exists():
        with trace.open("rb") as plain, gzip.open(packed, "wb", compresslevel=5) as file:
            shutil.copyfileobj(plain, file)
    commands = {mode: worker(mode, trace) for mode in ("decode", "lines", "read")}
    commands["packed"] = worker("read", packed)
    took = in_turn(runs, commands)
    decode = took["decode"]
    yield row(f"lines of {what}, CPU", took["lines"].cpu_s, "CPU s", decode.cpu_s)
    yield row(f"all of {what}, CPU", took["read"].cpu_s, "CPU s", decode.cpu_s)
    yield row(f"all of {what}, memory", took["read"].peak_mib, "MiB", decode.peak_mib)
    yield row(f"{what}, packed against plain", took["packed"].wall_s, "s", took["read"].wall_s)
    in_turn(1, {"first": worker("open", trace)})
    again = in_turn(runs, {"again": worker("open", trace)})["again"]
    yield row(f"{what}, opened again", again.wall_s, "s", took["read"].wall_s)
    yield from of_reports(trace, what, runs, decode)
    if HTA.exists():
        yield of_hta(trace, what, took["lines"])


def of_reports(trace: Path, what: str, runs: int, decode: Spent) -> Iterator[Row]:
    """The whole command, of a trace that was never opened, and of one that was."""
    command = rooflint("report", str(trace))

    def cold() -> Spent:
        for kept in trace.parent.glob(".*.rooflint"):
            kept.unlink()
        return spent(command)

    took = medians(runs, {"cold": cold, "again": lambda: spent(command)})
    yield row(f"`rooflint report` of {what}, CPU", took["cold"].cpu_s, "CPU s", decode.cpu_s)
    yield row(f"`rooflint report` of {what} again, CPU", took["again"].cpu_s, "CPU s", decode.cpu_s)


def of_hta(trace: Path, what: str, lines: Spent) -> Row:
    """HTA's load alone, without what it imports; once, since it takes a minute or two."""
    begin = "from hta.trace_analysis import TraceAnalysis"
    files, folder = {0: trace.name}, str(trace.parent)
    load = f"{begin}; TraceAnalysis(trace_files={files!r}, trace_dir={folder!r})"
    imported, loaded = (spent([str(HTA), "-c", code]).cpu_s for code in (begin, load))
    return row(f"lines of {what}, against HTA's load", lines.cpu_s, "CPU s", loaded - imported)


def worker(mode: str, path: Path) -> list[str]:
    return [sys.executable, str(Path(__file__).resolve()), "--worker", mode, str(path)]


def make_trace(path: Path, events: int) -> None:
    """Write the recorded steps again and again, as torch writes them."""
    with gzip.open(RECORDED) as file:
        header = json.load(file)
    recorded: list[dict[str, Any]] = header.pop("traceEvents")
    timed = [event for event in recorded if event["ph"] != "M" and isinstance(event["tid"], int)]
    begins = min(event["ts"] for event in timed)
    length = max(event["ts"] + event.get("dur", 0) for event in timed) - begins + 100
    ids = 1 + max(_largest_id(event) for event in timed)
    count = 0
    with path.open("w", encoding="utf-8") as file:
        file.write(json.dumps(header, indent=2)[:-2] + ',\n  "traceEvents": [')
        for turn in range(-(-events // len(timed))):
            for event in timed[: events - count]:
                file.write(("," if count else "") + "\n  " + _moved(event, turn, length, ids))
                count += 1
        file.write("\n  ]\n}\n")


_IDS = ("External id", "correlation", "Sequence number", "Ev Idx", "id")


def _largest_id(event: dict[str, Any]) -> int:
    return max(each.get(name) or 0 for each in (event, event.get("args", {})) for name in _IDS)


def _moved(event: dict[str, Any], turn: int, length: float, ids: int) -> str:
    event = {**event, "ts": round(event["ts"] + turn * length, 3)}
    if "args" in event:
        event["args"] = dict(event["args"])
    for each in (event, event.get("args", {})):
        for name in _IDS:
            if each.get(name):
                each[name] += turn * ids
    return json.dumps(event, indent=2).replace("\n", "\n  ")


def work(mode: str, path: Path, events: int) -> None:
    """One process."""
    if mode == "make":
        make_trace(path, events)
    elif mode == "decode":
        decode(path)
    elif mode == "lines":
        print(sum(add_up_lines(path).values()))
    else:
        from rooflint.profiles import kept, read

        if mode == "read":  # and nothing is kept
            kept.LEAST_BYTES = dict.fromkeys(kept.LEAST_BYTES, sys.maxsize)
        print(len(read(path).lines))


def decode(path: Path) -> None:
    """What nobody can do without: each event as a struct of the fields that lines need."""
    import msgspec

    label = int | float | str | None
    names = {
        "external_id": "External id", "correlation": "correlation", "sequence": "Sequence number",
        "forward_thread": "Fwd thread id", "device": "device", "stream": "stream",
    }  # fmt: skip
    args = msgspec.defstruct(
        "Args", [(name, label, None) for name in names], rename=names, gc=False
    )
    fields: list[Any] = [
        *((name, str, "") for name in ("ph", "cat", "name")),
        *((name, label, None) for name in ("pid", "tid", "ts", "dur", "id")),
        ("args", args | None, None),
    ]
    event = msgspec.defstruct("Event", fields, gc=False)
    trace = msgspec.defstruct("Trace", [("traceEvents", list[event])], gc=False)
    data = path.read_bytes()
    data = gzip.decompress(data) if path.suffix == ".gz" else data
    print(len(msgspec.json.decode(data, type=trace).traceEvents))


def add_up_lines(path: Path) -> dict[int, int]:
    """Loads a trace and adds up what the GPU did for each of its lines, in ns."""
    from rooflint.profiles.costs import join_launches
    from rooflint.profiles.lines import attribute
    from rooflint.profiles.steps import find_steps
    from rooflint.profiles.torch_trace import load_timeline, without_garbage_collection

    with without_garbage_collection():
        timeline = load_timeline(path)
        attribution = attribute(timeline, find_steps(timeline, {}).window_ns, {})
        launched, _ = join_launches(timeline)
        gpu, places = timeline.gpu, attribution.place_of
        lines: defaultdict[int, int] = defaultdict(int)
        for call, start, end in zip(launched, gpu.start_ns, gpu.end_ns, strict=True):
            lines[places[call] if call >= 0 else -1] += end - start
    return lines


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("traces", nargs="*", type=Path)
    parser.add_argument("--events", type=int, default=1_000_000)
    parser.add_argument("--runs", type=int, default=3)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--worker", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.worker:
        work(options.worker, options.traces[0], options.events)
        return
    rows: list[Row] = []
    if not options.traces:
        rows += measure(options.runs, options.events)
    for given in options.traces:
        with tempfile.TemporaryDirectory() as name:
            trace = Path(name) / "trace.json"
            data = given.read_bytes()
            trace.write_bytes(gzip.decompress(data) if given.suffix == ".gz" else data)
            rows += of_trace(trace, str(given), options.runs)
    if options.json:
        print(json.dumps(rows, indent=1))
        return
    for each in rows:
        ratio = "" if each["ratio"] is None else f"  {each['ratio']:.2f} x {each['floor']:.2f}"
        print(f"{each['name']:60} {each['ours']:9.2f} {each['unit']:6}{ratio}")


if __name__ == "__main__":
    main()
