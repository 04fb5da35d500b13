"""Whether a difference of two clock readings times what it seems to time."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from rooflint.flow.facts import Timing
from rooflint.flow.machine import Call, Machine
from rooflint.flow.places import call_with, site_of, without_arguments
from rooflint.flow.values import Clock, Site, Value

if TYPE_CHECKING:
    from rooflint.flow.interpreter import Interpreter


def judge_timing(machine: Machine, at: Site, stops: list[Clock], starts: list[Clock]) -> None:
    """Whether the difference of two clock readings times what it seems to time."""
    for stop in stops:
        for start in starts:
            if stop.at <= start.at or stop.last_launch <= start.at:
                continue
            spans_turns = start.iteration != stop.iteration[: len(start.iteration)] or (
                len(start.iteration) < len(stop.iteration)
            )
            waited_inside = stop.last_wait > start.at
            deeper = any(
                when > start.at and when < stop.at
                for level, when in machine.last_inner_wait.items()
                if level > start.depth
            )
            if stop.is_pending and not deeper and not (spans_turns and waited_inside):
                sure = not start.at < stop.last_elsewhere
                runs_on = len(start.iteration) < len(stop.iteration)
                note_timing(machine, Timing(at, start, "stop", sure, runs_on=runs_on))
            elif not stop.is_pending and stop.wait_is_explicit:
                if start.is_pending and not spans_turns:
                    note_timing(machine, Timing(start.site, start, "start"))
                elif (
                    not start.launched_before
                    and stop.iteration
                    and not spans_turns
                    and not any(
                        start.at < when < stop.at
                        for level, when in machine.last_inner_launch.items()
                        if level > start.depth
                    )
                ):
                    note_timing(machine, Timing(at, start, "warm-up"))


def note_timing(machine: Machine, timing: Timing) -> None:
    timing = replace(timing, in_loop=machine.loop_depth() > 0)
    machine.found.timings.setdefault((id(timing.site.node), timing.fault), timing)


def time_repeated(it: Interpreter, function: Value, call: Call) -> None:
    """`timeit` runs a function many times between two readings of its own."""
    machine = it.machine
    before = machine.at
    call_with(it, function, [], without_arguments(call))
    if machine.last_launch > before and machine.is_pending:
        note_timing(machine, Timing(site_of(call), None, "stop"))
