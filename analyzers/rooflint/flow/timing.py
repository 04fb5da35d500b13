"""Whether a difference of two clock readings times what it seems to time."""

from __future__ import annotations

import ast
from typing import TYPE_CHECKING

from rooflint.flow.facts import Timing
from rooflint.flow.machine import Call, Machine
from rooflint.flow.places import call_with, site_of, without_arguments
from rooflint.flow.values import Clock, Instance, Site, Value, string_of
from rooflint.plain import replace

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
                elif not start.launched_before and not stop.iteration:
                    note_timing(machine, Timing(at, start, "first-call"))


def record_event(machine: Machine, event: Instance) -> None:
    """`event.record()`: it happens once the GPU has come there."""
    machine.at += 1
    event.facts["recorded"] = machine.at
    machine.uses_clock()


def ask_elapsed_time(machine: Machine, start: Instance, call: Call) -> None:
    """`start.elapsed_time(end)`: an error while the GPU has not come to the end."""
    machine.uses_clock()
    if machine.last_sync is not None:
        machine.found.timed_syncs.add(machine.last_sync)
    ends = call.argument(0, "end_event") or ()
    recorded = [a.facts.get("recorded", 0) for a in ends if isinstance(a, Instance)]
    if not recorded or len(recorded) != len(ends) or min(recorded) <= machine.last_wait:
        return
    sure = machine.last_elsewhere < min(recorded)
    note_timing(machine, Timing(site_of(call), None, "event", sure))


def note_timing(machine: Machine, timing: Timing) -> None:
    timing = replace(timing, in_loop=machine.loop_depth() > 0)
    machine.found.timings.setdefault((id(timing.site.node), timing.fault), timing)


def time_repeated(it: Interpreter, function: Value, call: Call) -> None:
    """`timeit` runs a function many times between two readings of its own."""
    machine = it.machine
    before = machine.at
    code = string_of(function)
    if code is None:
        call_with(it, function, [], without_arguments(call))
    else:
        _follow_text(it, code, call)
    if machine.last_launch > before and machine.is_pending:
        note_timing(machine, Timing(site_of(call), None, "stop"))


def _follow_text(it: Interpreter, code: str, call: Call) -> None:
    """Statements given as text: what they launch counts, a wait has no place to show."""
    machine = it.machine
    if code not in machine.texts:
        try:
            machine.texts[code] = ast.parse(code).body
        except (SyntaxError, ValueError):
            machine.texts[code] = []
    found, trace = machine.found, machine.trace
    machine.found = replace(found, waits={}, timings={}, timed_syncs=set())
    machine.trace = None
    it.statements(machine.texts[code], call.frame)
    machine.found, machine.trace = found, trace
