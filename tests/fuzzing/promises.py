"""What holds whatever is read: no fault of ours, one sentence, no endless work."""

from __future__ import annotations

import json
import logging
import math
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, TypeVar

import rooflint
from rooflint.model import Recording, Report, RooflintError
from rooflint.outputs import json as json_output
from rooflint.outputs.text import render
from rooflint.report import cost_sentence, measured_severity
from rooflint_server.cards import make_card

Value = TypeVar("Value")

MOST_S = 2.0
"""CPU time for what is not long; and for 10,000 lines or events of what is."""
patience = 1.0
"""Times as long as that. A test on a machine that is busy, or slow, has more."""


@contextmanager
def no_fault() -> Generator[None]:
    """All that rooflint logs as a fault of its own is one, whoever caught it."""
    log = logging.getLogger("rooflint")
    faults = _Faults()
    level = log.level
    log.setLevel(logging.DEBUG)
    log.addHandler(faults)
    try:
        yield
    finally:
        log.removeHandler(faults)
        log.setLevel(level)
    for record in faults.records:
        error = record.exc_info[1] if record.exc_info else None
        if error is not None:
            raise AssertionError(f"a fault was logged: {record.getMessage()}") from error


class _Faults(logging.Handler):
    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []

    def emit(self, record: logging.LogRecord) -> None:
        if record.exc_info and record.exc_info[1] is not None:
            self.records.append(record)


@contextmanager
def soon(size: int = 0) -> Generator[None]:
    """It takes no longer than a thing of that many lines or events may."""
    start = time.process_time()
    yield
    spent_s = time.process_time() - start
    allowed_s = patience * MOST_S * max(1.0, size / 10_000)
    assert spent_s <= allowed_s, f"{spent_s:.1f} s of {allowed_s:.1f} s for {size} lines or events"


def refused(read: Callable[[], Value]) -> Value | None:
    """What is read; `None`: it was refused, in one sentence."""
    try:
        return read()
    except RooflintError as error:
        check_sentence(str(error))
        return None


def check_sentence(text: str) -> None:
    # A name within it may hold whatever there is, but for one line.
    assert text.strip(), "an error says nothing"
    assert len(text) < 20_000, f"an error says {len(text)} characters"


def check_recording(recording: Recording, folder: Path) -> None:
    """A recording that was read is sane, and can be judged, shown and written everywhere."""
    check_numbers(recording)
    report = rooflint.judge(recording, rooflint.findings_of(recording))
    check_report(report)
    shown = render(report, color=False)
    assert "Traceback" not in shown
    json.loads(json_output.render(report), parse_constant=_no_constant)
    page = rooflint.make_page(report)
    page.encode("utf-8", "surrogatepass")
    rooflint.summarize(report)
    for line in report.lines[:50]:
        measured_severity(line, report)
        cost_sentence(line, report)
        make_card(line, recording, None, markdown=True)
        make_card(line, recording, None, markdown=False)
    for path, text in list(recording.sources.items())[:3]:
        followed = rooflint.follow_file(report, path, text + "\n")
        if followed:
            rooflint.glance_at(report, followed)
    refused(lambda: rooflint.show_comparison(rooflint.compare(report, report)))


def check_report(report: Report) -> None:
    for line in report.lines:
        verdict = line.verdict
        assert verdict is None or verdict.reason
        assert verdict is None or verdict.roof_ratio is None or 0 <= verdict.roof_ratio <= 1
    check_numbers(report.step)


def check_numbers(value: object, name: str = "") -> None:
    """Every number is one, and no time, count or size is below zero."""
    if isinstance(value, bool) or value is None or isinstance(value, str):
        return
    if isinstance(value, int | float):
        assert math.isfinite(value), f"{name} is {value}"
        # A clock may begin anywhere, so a place on it may be below its zero.
        is_place = name in ("start_us", "end_us", "at_us", "code")
        is_size = name.endswith(("_us", "_count", "_bytes", "_ratio", "flop", "line"))
        assert is_place or not is_size or value >= -1e-6, f"{name} is {value}"
    elif is_dataclass(value):
        for field in fields(value):
            check_numbers(getattr(value, field.name), field.name)
    elif isinstance(value, dict):
        for key, item in value.items():
            check_numbers(item, name or str(key))
    elif isinstance(value, list | tuple):
        for item in value:
            check_numbers(item, name)


def _no_constant(name: str) -> Any:
    raise AssertionError(f"the JSON holds {name}, which is none of JSON's numbers")
