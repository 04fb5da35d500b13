"""Recordings in, costs out; one file per format.

- `streams`: opens a file however it is packed, and tells what it is
- `chrome_json`: decodes a trace piece by piece
- `timeline`: a trace's events as columns
- `torch_trace`: traces of torch.profiler
- `folder`: what `rooflint profile` wrote
- `ncu_report`, `ncu_csv`: reports and tables of Nsight Compute; `ncu_module`: the former by
  ncu-report, in a process of its own
- `steps`, `lines`, `waits`, `shapes`: where steps are, whose line an event is, what waiting costs,
  what an operator must compute and move
- `functions`: whose line it is, by the source
- `activities`: what was done when, as it can be drawn
- `adopted`: which files at hand are those of a trace that came without them
- `costs`: all of these, added up by line and kernel
- `kept`: what reading a large recording gave, beside it
- `counters`, `counter_join`: what ncu's metrics mean, and whose kernel they are
- `measured_peaks`: what was measured that GPUs reach
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from rooflint.model import ProfileError, Recording

if TYPE_CHECKING:
    from rooflint.profiles.adopted import Find


def read(path: str | Path, find: Find | None = None) -> Recording:
    """A recording folder, a torch.profiler trace, an ncu report or an ncu CSV, packed or not.

    `find` gives files at hand, for a trace that came without its own. Raises `ProfileError`.
    """
    from rooflint.profiles.measured_peaks import find as find_peaks
    from rooflint.profiles.torch_trace import without_garbage_collection

    with without_garbage_collection():
        recording = _read_once(Path(path), find)
    driver = recording.versions.get("driver")
    return replace(recording, measured_peaks=find_peaks(recording.device, driver))


def _read_once(path: Path, find: Find | None) -> Recording:
    """What reading a large recording gave is kept beside it."""
    from rooflint.profiles import kept

    key = kept.key_of(path)
    if key is None:
        return _read(path, find)
    recording = kept.find(path, key, find)
    if recording is None:
        asked = kept.Asked(find)
        recording = _read(path, asked if find else None)
        # A report that could not be read may be once ncu-report is installed.
        if recording.counters_ratio is not None or not (path / "counters.ncu-rep").is_file():
            kept.keep(path, key, asked, recording)
    return recording


def _read(path: Path, find: Find | None) -> Recording:
    from rooflint.profiles.counter_join import recording_of_launches
    from rooflint.profiles.folder import read_folder
    from rooflint.profiles.ncu_csv import read_csv
    from rooflint.profiles.ncu_report import read_report
    from rooflint.profiles.streams import sniff
    from rooflint.profiles.torch_trace import read_trace

    if path.is_dir():
        return read_folder(path)
    match sniff(path):
        case "json":
            return read_trace(path, find)
        case "ncu report":
            return recording_of_launches(path, read_report(path))
        case "text":
            return recording_of_launches(path, read_csv(path))
        case "sqlite":
            raise ProfileError(
                f"{path} is an Nsight Systems database, which names no source lines: "
                "record with `rooflint profile`, or pass a torch.profiler trace or an ncu report."
            )
        case "zip":
            raise ProfileError(f"{path} is a zip archive: unpack it and pass the trace in it.")
