"""The nouns of `model` that come from a recording.

They are part of that page and imported from there; whoever only reads source text does not pay
for making them.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Literal, Protocol

from rooflint.model import Finding, Limiter, Provenance


@dataclass(frozen=True, slots=True)
class Device:
    """What the run ran on."""

    kind: Literal["cuda", "rocm", "cpu", "other"]
    name: str
    count: int = 1
    compute_capability: tuple[int, int] | None = None
    sm_count: int | None = None
    memory_bytes: int | None = None


@dataclass(frozen=True, slots=True)
class Peaks:
    """The roof: sustained rates that the device can reach, by precision.

    `flop_per_s` is keyed by "fp64", "fp32", "tf32", "bf16", "fp16", "fp8", "int8"; where both
    kinds of unit compute in a type, "tensor fp64" is that of the tensor cores.
    """

    flop_per_s: Mapping[str, float]
    dram_bytes_per_s: float
    provenance: Provenance
    source: str
    """The datasheet's address, or how they were measured."""

    @property
    def ridge_flop_per_byte(self) -> dict[str, float]:
        """From this many FLOPs a byte on, arithmetic is the limit and no longer DRAM."""
        return {name: rate / self.dram_bytes_per_s for name, rate in self.flop_per_s.items()}

    def of(self, pipe: str) -> float | None:
        """Peak rate of a pipe. A table's "bf16" means tensor cores, unless it names both."""
        tensor = f"tensor {pipe.removeprefix('tensor ')}"
        if pipe == tensor:
            return self.flop_per_s.get(pipe) or self.flop_per_s.get(pipe.removeprefix("tensor "))
        if pipe in _TENSOR_TYPES and tensor not in self.flop_per_s:
            return None
        return self.flop_per_s.get(pipe) or None


_TENSOR_TYPES = ("tf32", "bf16", "fp16", "fp8", "int8")


@dataclass(frozen=True, slots=True)
class Step:
    """One iteration of the loop that was recorded; times on the profiler's clock."""

    start_us: float
    end_us: float


@dataclass(frozen=True, slots=True)
class SyncCall:
    """All host calls of one name that wait for the device (`cudaStreamSynchronize`, ...)."""

    name: str
    count: int
    host_us: float


@dataclass(frozen=True, slots=True)
class Copy:
    """All copies of one direction ("HtoD", "DtoH", "DtoD", "PtoP"); `None` bytes: not recorded."""

    direction: str
    count: int
    gpu_us: float
    byte_count: int | None


@dataclass(frozen=True, slots=True)
class Counters:
    """Hardware counters of one launch, the mean of those that ncu measured. Absent: `None`.

    Ratios are of peak, 0 to 1. `flop_by_pipe` holds executed operations (whole tiles) keyed
    like `Peaks.flop_per_s`, with a "tensor " prefix on tensor-core pipes.
    """

    launch_count: int
    duration_us: float | None = None
    dram_read_bytes: float | None = None
    dram_write_bytes: float | None = None
    flop_by_pipe: Mapping[str, float] = field(default_factory=dict[str, float])
    sm_ratio: float | None = None
    memory_ratio: float | None = None
    dram_ratio: float | None = None
    l2_ratio: float | None = None
    l1_ratio: float | None = None
    occupancy_ratio: float | None = None
    theoretical_occupancy_ratio: float | None = None
    occupancy_limiter: str | None = None
    waves: float | None = None
    registers: int | None = None
    spill_bytes: float | None = None
    sectors_per_load: float | None = None
    sectors_per_store: float | None = None
    stalls: tuple[tuple[str, float], ...] = ()
    """Reasons why warps waited, the largest first, each with its share of the waiting."""
    peaks: Peaks | None = None
    """The roof as the report itself states it."""
    shortest_us: float | None = None
    longest_us: float | None = None
    """Of the launches that ncu measured."""
    dram_total_bytes: float | None = None
    """Reads and writes, where a report does not tell one from the other."""
    l2_bytes: float | None = None
    """What the SMs read from L2 and wrote to it."""
    l1_bytes: float | None = None
    """What loads and stores of global and local memory touched in L1, whole sectors."""
    load_used_ratio: float | None = None
    """How much of the sectors that loads of global memory touch is what they asked for."""
    store_used_ratio: float | None = None
    bank_conflict_ratio: float | None = None
    """Share of the passes through shared memory that only its bank conflicts made necessary."""

    @property
    def dram_bytes(self) -> float | None:
        if self.dram_read_bytes is None or self.dram_write_bytes is None:
            return self.dram_total_bytes
        return self.dram_read_bytes + self.dram_write_bytes


SHORT_US = 10.0
"""A kernel below this is about as short as the launch that starts it."""


@dataclass(frozen=True, slots=True)
class KernelCost:
    """One kernel at one launch shape on one line (`None`: not known). Totals over the window."""

    name: str
    path: str | None
    line: int | None
    backward: bool
    launch_count: int
    gpu_us: float
    grid: tuple[int, int, int] | None = None
    block: tuple[int, int, int] | None = None
    op: str | None = None
    """The torch operator that launched it (`aten::mm`)."""
    precision: str | None = None
    """The type it computes in, keyed like `Peaks.flop_per_s`, if the op's inputs tell."""
    flop: float | None = None
    """Model FLOPs from the op's shapes, over all launches."""
    model_flop: float | None = None
    """Those of them that are a model's: products as torch counts them, none of what is computed
    again. 0: known to be no product."""
    short_count: int | None = None
    """How many of the launches are shorter than `SHORT_US`."""
    minimal_bytes: float | None = None
    """What the op's shapes say must move, over all launches."""
    counters: Counters | None = None
    rows: tuple[tuple[str, int], ...] = ()
    """Of a matrix product: which of its dimensions M, N and K lie in rows in memory, and how many
    elements apart these rows are; where the trace says."""


@dataclass(frozen=True, slots=True)
class Work:
    """What a kernel, or all kernels of a line, computed and moved in some time; and their roof.

    Totals over `launch_count` launches of the window, as ncu counted them, or as estimated from
    shapes. `None`: not known.
    """

    duration_us: float
    """How long that took, as ncu timed it; where it did not, on the timeline."""
    flop_by_pipe: Mapping[str, float]
    """Executed (whole tiles) where ncu counted them; keyed as in `Counters`. Empty: not known."""
    dram_bytes: float | None
    peaks: Peaks | None
    flop_provenance: Provenance
    dram_provenance: Provenance
    launch_count: int = 1
    covered_ratio: float = 1.0
    """Share of the line's GPU time that these launches take; of the rest this is not known."""
    roof_us: float | None = None
    """The least time it takes: each kernel needs the longest of the times that its operations and
    its bytes take at peak rate."""
    l2_bytes: float | None = None
    l1_bytes: float | None = None
    expected_flop: float | None = None
    """What the shapes say."""
    expected_bytes: float | None = None
    """What the shapes say must move."""
    padding_ratio: float | None = None
    """Of products: executed FLOPs as a multiple of what the shapes say, for whole tiles."""
    counters: Counters | None = None
    """Of the mean launch: amounts by launches, shares of a peak by time."""

    @property
    def provenance(self) -> Provenance:
        """Of what was made of both."""
        known = [self.flop_provenance] if any(self.flop_by_pipe.values()) else []
        known += [self.dram_provenance] if self.dram_bytes is not None else []
        return "ncu" if known and set(known) == {"ncu"} else "estimated"

    @property
    def flop(self) -> float | None:
        return sum(self.flop_by_pipe.values()) if self.flop_by_pipe else None

    @property
    def main_pipe(self) -> str | None:
        """The pipe that did most of the operations."""
        pipes = [pipe for pipe, flop in self.flop_by_pipe.items() if flop]
        return max(pipes, key=self.flop_by_pipe.__getitem__, default=None)

    def peak_of(self, pipe: str) -> float | None:
        return self.peaks.of(pipe) if self.peaks else None

    @property
    def compute_ratio(self) -> float | None:
        """Share of peak of the busiest arithmetic pipe; `None`: no operations or no peak known."""
        shares = [
            1e6 * flop / self.duration_us / peak
            for pipe, flop in self.flop_by_pipe.items()
            if flop and (peak := self.peak_of(pipe))
        ]
        return max(shares, default=None)

    @property
    def memory_ratio(self) -> float | None:
        """Share of the peak DRAM bandwidth."""
        rate = self.bytes_per_s
        return rate / self.peaks.dram_bytes_per_s if self.peaks and rate is not None else None

    @property
    def roof_ratio(self) -> float | None:
        """Achieved rate as a share of the roof at this intensity."""
        return None if self.roof_us is None else min(1.0, self.roof_us / self.duration_us)

    @property
    def flop_per_s(self) -> float | None:
        return None if self.flop is None else 1e6 * self.flop / self.duration_us

    @property
    def bytes_per_s(self) -> float | None:
        return None if self.dram_bytes is None else 1e6 * self.dram_bytes / self.duration_us

    @property
    def intensity(self) -> float | None:
        """Operations for each byte of DRAM traffic; `None` also where there are none of either."""
        return self.flop / self.dram_bytes if self.flop and self.dram_bytes else None

    @property
    def peak_flop_per_s(self) -> float | None:
        """Of the main pipe."""
        return self.peak_of(self.main_pipe) if self.main_pipe else None

    @property
    def ridge(self) -> float | None:
        """The intensity from which on arithmetic is the roof of the main pipe, not memory."""
        peak = self.peak_flop_per_s
        return peak / self.peaks.dram_bytes_per_s if self.peaks and peak else None

    @property
    def roof_flop_per_s(self) -> float | None:
        """The most that the main pipe can do at this intensity."""
        if self.peaks is None or self.intensity is None or self.peak_flop_per_s is None:
            return None
        return min(self.peak_flop_per_s, self.intensity * self.peaks.dram_bytes_per_s)

    @property
    def traffic_ratio(self) -> float | None:
        """DRAM bytes moved as a multiple of what the shapes say must move."""
        if self.dram_provenance != "ncu" or self.dram_bytes is None or not self.expected_bytes:
            return None
        return self.dram_bytes / self.expected_bytes


@dataclass(frozen=True, slots=True)
class InsideCost:
    """The part of a line's cost that one line of a library has, below it.

    Of what torch.compile made, the part of kernels that fuse the same operators, and of a trace
    without lines, the part of a module: no line is known.
    """

    path: str | None
    line: int | None
    function: str | None = None
    """Its qualified name; of fused kernels their operators."""
    module: str | None = None
    """The class of the module that it is run by: `LlamaMLP`."""
    forward_us: float = 0.0
    backward_us: float = 0.0
    recompute_us: float = 0.0
    host_wait_us: float = 0.0

    @property
    def device_us(self) -> float:
        return self.forward_us + self.backward_us + self.recompute_us


IdleCause = Literal["host", "data loading", "launch", "sync", "copy", "communication", "other"]
"""Why a device computes nothing: the host does something else; it loads data; a launch takes its
few µs to reach the device; the host waited for the device; the device copies; it sends data to
others or waits for theirs; anything else."""

LATE_CAUSES: tuple[IdleCause, ...] = ("host", "data loading", "launch")
"""Those in which the host launches too late."""


@dataclass(frozen=True, slots=True)
class LineCost:
    """What one line cost over the recorded window. Divide by `Recording.step_count` to show a step.

    On a run without a GPU, the times of the work are the CPU's in torch operators.
    """

    path: str
    line: int
    function: str | None = None
    forward_us: float = 0.0
    backward_us: float = 0.0
    recompute_us: float = 0.0
    """Of the forward, run again for the backward: activation checkpointing."""
    cpu_us: float | None = None
    """Host time spent on this line itself, calls into other lines of the user left out."""
    python_us: float | None = None
    """On a run without a GPU, time beside torch's operators: Python, and other libraries.

    Marks slow just that: it is known only where a plain step was timed, or stacks were looked at.
    """
    beside_ratio: float | None = None
    """The share of `cpu_us` that was beside torch's operators, as recorded."""
    cpu_total_us: float | None = None
    """CPU time of the line with all that it calls, recursion counted once; where it was sampled."""
    cpu_wait_us: float | None = None
    """How long the main thread waited here, for a file, a lock, a clock; where it was sampled."""
    cpu_provenance: Provenance | None = None
    host_wait_us: float = 0.0
    wait_count: int = 0
    gpu_idle_us: float = 0.0
    """How long the GPU then had nothing to do because of the waiting."""
    launch_idle_us: float = 0.0
    """How long the GPU had nothing to do because this line's launches came late."""
    idle_us: Mapping[IdleCause, float] = field(default_factory=dict[IdleCause, float])
    """How long the GPU computed nothing because of this line, by cause: that the host was busy
    with it, that it waits, copies, communicates, or that its launches take time."""
    launch_count: int = 0
    copy_us: float = 0.0
    """GPU time of its copies between host and device."""
    pageable_copy_us: float = 0.0
    """Of these, from or to pageable memory: through a buffer of the driver's, by the host."""
    copy_wait_us: float = 0.0
    """How long the host was blocked by copying, of `host_wait_us`."""
    without_wait_us: float | None = None
    """What the window would be shorter at most if the line did not wait, by replaying the run
    without that; it copies as before. `None`: not known, or too little to ask."""
    without_copies_us: float | None = None
    """Likewise if it neither copied nor waited for copies."""
    without_host_us: float | None = None
    """Likewise if the host's own work on it took no time."""
    flop: float | None = None
    flop_provenance: Provenance | None = None
    recompute_flop: float | None = None
    """How many of them were computed again: a model's own FLOPs are without."""
    dram_bytes: float | None = None
    dram_provenance: Provenance | None = None
    precision: str | None = None
    inside: tuple[InsideCost, ...] = ()
    """Where in libraries the work was done, largest first; the rest was done on the line itself."""
    device_us_by_step: tuple[float, ...] = ()
    """The device's time for it, by the step that launched it; none: not known."""
    wait_us_by_step: tuple[float, ...] = ()
    """Likewise how long the host was blocked."""
    idle_us_by_step: tuple[float, ...] = ()
    """Likewise how long the GPU had nothing to do because the line waited or launched late."""

    @property
    def device_us(self) -> float:
        return self.forward_us + self.backward_us + self.recompute_us

    @property
    def late_us(self) -> float:
        """How long the GPU had nothing to do because the host was on this line."""
        if not self.idle_us:
            return self.launch_idle_us
        return sum(self.idle_us.get(cause, 0.0) for cause in LATE_CAUSES)

    @property
    def wait_gain_us(self) -> float:
        """What the window would be shorter at most without its wait, or the copy that is one.

        Where the run cannot be replayed, as long as the GPU idled behind it.
        """
        known = [us for us in (self.without_wait_us, self.without_copies_us) if us is not None]
        return max(known) if known else self.gpu_idle_us


Doings = IdleCause | Literal["kernel", "set", "wait"]


@dataclass(frozen=True, slots=True)
class Activity:
    """A stretch of time in which a device or the host did one thing, to be drawn."""

    device: int | None
    """`None`: the host."""
    what: Doings
    """Of a device: what it ran, or why it computed nothing; of the host: that it ran a line
    ("host"), loaded data, or waited for a device."""
    start_us: float
    """From the window's start, as recorded."""
    end_us: float
    path: str | None
    line: int | None
    name: str | None
    """The kernel's or the call's; `None`: there is none, or several were put together."""
    filled_us: float
    """How much of that time it is: less than all where several were put together."""
    count: int = 1
    """How many were, since they were too many or too short to be seen alone."""


@dataclass(frozen=True, slots=True)
class RangeCost:
    """All ranges of one name that the script itself opened (`record_function`, NVTX)."""

    name: str
    count: int
    host_us: float
    gpu_us: float
    """Device time of the work that was launched inside of them."""


KernelKey = tuple[
    str,
    str | None,
    int | None,
    bool,
    tuple[int, int, int] | None,
    tuple[int, int, int] | None,
]
"""What tells one `KernelCost` from another: name, path, line, backward, grid, block."""


@dataclass(frozen=True, slots=True)
class Change:
    """What is taken out of a run on paper. Lines are (path, line)."""

    waits: frozenset[tuple[str, int]] = frozenset()
    """Lines that no longer wait; what they copy is still copied."""
    copies: frozenset[tuple[str, int]] = frozenset()
    """Lines that no longer copy."""
    hosts: frozenset[tuple[str, int]] = frozenset()
    """Lines whose own work on the host takes no time."""
    launches: bool = False
    """What the host does to launch kernels takes no time."""
    kernels: Mapping[KernelKey, float] = field(default_factory=dict[KernelKey, float])
    """Kernels that take only this share of their time."""


class Replay(Protocol):
    """The recorded steps, to be run on paper."""

    step_us: float
    """A step as it is, without the recorder."""

    def gain_us(self, change: Change) -> float:
        """What a step would take less at most."""
        ...


@dataclass(frozen=True, slots=True)
class PythonTime:
    """Where Python was, by looking at its stacks every few milliseconds, over the whole run."""

    look_count: int
    wall_us: float
    cpu_us: float
    """CPU time of Python's threads."""
    wait_us: float
    """How long the main thread waited."""
    torch_us: float
    """CPU time inside of functions of torch's (operators written as `a @ b` are not)."""
    unattributed_us: float
    """CPU time of threads that ran none of the user's lines."""
    all_threads: bool
    """Whether all threads were looked at, or the main thread alone."""


@dataclass(frozen=True)
class Recording:
    """A run: what it ran on, its window, its steps, and what each line and kernel cost."""

    origin: str
    """The folder or file that it was read from."""
    device: Device
    steps: tuple[Step, ...]
    window_us: float
    gpu_busy_us: float | None
    """Union of kernels, copies and sets over all streams of a device, summed over devices."""
    gpu_span_us: float | None
    kernel_count: int
    sync_calls: tuple[SyncCall, ...]
    copies: tuple[Copy, ...]
    unattributed_us: float
    """Device time that no line can be named for."""
    lines: tuple[LineCost, ...]
    kernels: tuple[KernelCost, ...]
    by_function: bool = False
    """The lines are those where functions begin, each with all that its function did itself: a
    trace without marks names no others."""
    ranges: tuple[RangeCost, ...] = ()
    idle_us: Mapping[IdleCause, float] = field(default_factory=dict[IdleCause, float])
    """How long the GPUs computed nothing, by cause, from the window's start until it and its work
    were over; with what no line is known for."""
    without_launches_us: float | None = None
    """What the window would be shorter at most if launching kernels took the host no time, by
    replaying the run without that."""
    replay: Replay | None = field(default=None, repr=False, compare=False)
    """The recorded steps, to be run on paper with something gone; `None`: a note says why."""
    activities: tuple[Activity, ...] = field(default=(), repr=False)
    """What the devices and the host did over time, to be drawn; of a trace without times, none."""
    peaks: Peaks | None = None
    """The roof as the recording itself states it."""
    measured_peaks: Peaks | None = None
    """What `rooflint doctor --measure` found that such a device reaches."""
    window_busy_us: float | None = None
    """`gpu_busy_us` of the work that the window launched, where the trace holds more than that."""
    window_span_us: float | None = None
    """From the first start to the last end of that work, where the steps' bounds are exact."""
    window_kernel_count: int | None = None
    counters_ratio: float | None = None
    """Share of the GPU time whose kernels were measured by ncu; `None`: no counters."""
    lost_gpu: str | None = None
    """The GPU that the run used, where the trace holds nothing of it; `device` is then the CPU."""
    python: PythonTime | None = None
    """Where lines were sampled: what their `cpu_us` are a part of."""
    plain_step_us: float | None = None
    """Step time without the profiler, if a stretch of steps was timed first."""
    plain_steps_us: tuple[float, ...] = ()
    """The times that it is the mean of, where the recording kept them."""
    steps_seen: int | None = None
    first_step: int | None = None
    """Which of the `steps_seen` steps the window starts at, from 0."""
    step_line: tuple[str, int] | None = None
    """Path and line of the loop whose iterations are the steps, where the recording names it."""
    steps_are_calls: bool = False
    """The steps are calls of a function, and `step_line` is its first line."""
    made_at: str | None = None
    """When it was made, as ISO 8601 has it."""
    argv: tuple[str, ...] = ()
    versions: Mapping[str, str] = field(default_factory=dict[str, str])
    source_hashes: Mapping[str, str] = field(default_factory=dict[str, str])
    """SHA-256 of each of the user's files as it was run, by path."""
    sources: Mapping[str, str] = field(default_factory=dict[str, str])
    """The text of the user's files as it was run, by path, where the recording kept it."""
    exit_code: int | None = None
    """How the script ended; `None`: not known (a trace made elsewhere)."""
    notes: tuple[str, ...] = ()
    """What is missing or was given up, a sentence each."""

    # Sums over all lines, which are asked for at each line.
    @cached_property
    def operators_us(self) -> float:
        """All work of the lines' on their device, and what no line can be named for."""
        return sum(cost.device_us for cost in self.lines) + self.unattributed_us

    @cached_property
    def beside_operators_us(self) -> float:
        """What the lines took beside torch's operators, where that is known."""
        return sum(cost.python_us or 0.0 for cost in self.lines)

    @cached_property
    def is_python(self) -> bool:
        """Whether the run's time is Python's alone, so that lines are told by `cpu_us`."""
        return self.device.kind == "cpu" and self.operators_us < PYTHON_RATIO * self.window_us

    @property
    def step_count(self) -> int:
        return max(1, len(self.steps))

    @property
    def busy_us(self) -> float | None:
        """`gpu_busy_us`, of what the window launched."""
        return self.gpu_busy_us if self.window_busy_us is None else self.window_busy_us

    @property
    def step_us(self) -> float:
        """Mean time of a recorded step (the whole window where no steps are known)."""
        if self.steps:
            return (self.steps[-1].end_us - self.steps[0].start_us) / len(self.steps)
        return self.window_us


PYTHON_RATIO = 0.01
"""A run whose torch operators take less of the time than this is a Python program."""


# --- where the two meet -----------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Verdict:
    """What limits a line, why (with its numbers), and what to do about it."""

    limiter: Limiter
    reason: str
    advice: str | None = None
    provenance: Provenance = "measured"
    roof_ratio: float | None = None
    """Achieved rate as a share of the roof at this intensity."""
    saves_us: float | None = None
    """At most this much of the recorded window, if the advice is followed."""
    free: bool = False
    """A wait that costs nothing, since the GPU had work or was idle anyway."""


@dataclass(frozen=True, slots=True)
class KernelReport:
    """One kernel, judged. No work: neither counters nor shapes tell it, or no peaks are known."""

    kernel: KernelCost
    verdict: Verdict
    work: Work | None = None


@dataclass(frozen=True, slots=True)
class LineReport:
    """All that is known of one line: its findings, its cost, its verdict, its kernels."""

    path: str
    line: int
    findings: tuple[Finding, ...] = ()
    cost: LineCost | None = None
    verdict: Verdict | None = None
    kernels: tuple[KernelCost, ...] = ()
    stale: bool = False
    """The line was changed since it was measured."""
    work: Work | None = None
    """Of its kernels together."""
    judged: tuple[KernelReport, ...] = ()
    """Its kernels, the costliest first."""


@dataclass(frozen=True, slots=True)
class Gain:
    """One of the changes that gain most: what, where, and what it could save at most."""

    title: str
    saves_us: float
    """Over the recorded window. Gains of one report never add up to more than the window."""
    path: str | None = None
    line: int | None = None


@dataclass(frozen=True, slots=True)
class Report:
    """A recording, judged: the step as a whole, each line, and what to do first."""

    recording: Recording
    step: Verdict
    lines: tuple[LineReport, ...]
    gains: tuple[Gain, ...]
    kernels: tuple[KernelReport, ...] = ()
    """All kernels of the recording, in its order."""


# --- two recordings ---------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Difference:
    """A time before and after, a step; of runs without steps, in all."""

    before_us: float
    after_us: float
    noise_us: float | None
    """How much it may be off, by what repeated steps differ (95 %); `None`: not known."""

    @property
    def change_us(self) -> float:
        return self.after_us - self.before_us

    @property
    def change_ratio(self) -> float | None:
        """Of the time before; `None`: that was nothing."""
        return self.change_us / self.before_us if self.before_us > 0 else None

    @property
    def is_noise(self) -> bool:
        """Whether steps of one run differ as much."""
        return self.noise_us is not None and abs(self.change_us) <= self.noise_us


@dataclass(frozen=True, slots=True)
class LineDifference:
    """One line in two runs, found again through edits."""

    path: str
    line: int
    """Where it is in the later run; a line that is gone: where it was."""
    state: Literal["same", "changed", "new", "gone"]
    """Whether its text is the same, or not, or only one of the runs has the line."""
    before_path: str | None
    before_line: int | None
    work: Difference
    """The device's time: GPU time, or without a GPU the CPU's."""
    wait: Difference
    """How long the host was blocked."""
    idle: Difference
    """How long the GPU had nothing to do because of the line."""
    before: LineReport | None
    after: LineReport | None
    summary: str
    """As in "wait 41 → 0 ms a step"; "within noise" where it is."""

    @property
    def is_noise(self) -> bool:
        """Whether nothing changed beyond what steps of one run differ by."""
        return self.work.is_noise and self.wait.is_noise and self.idle.is_noise

    @property
    def largest_change_us(self) -> float:
        """The largest of the changes that are no noise."""
        parts = (self.work, self.wait, self.idle)
        return max((abs(part.change_us) for part in parts if not part.is_noise), default=0.0)


@dataclass(frozen=True, slots=True)
class Comparison:
    """Two runs of what is one program to whoever wrote it, before and after a change."""

    before: Report
    after: Report
    step: Difference
    """Of runs without steps, what was recorded in all."""
    lines: tuple[LineDifference, ...]
    """What changed most first."""
    caveats: tuple[str, ...]
    """What else is different between the runs, a sentence each."""
    noise: str
    """Where the noise band comes from, in a sentence."""
    summary: str
    """As in "step 84.1 → 61.3 ms (−27 % ± 2)"."""

    def at(self, path: str, line: int) -> LineDifference | None:
        """What is known of a line of the later run."""
        return next(
            (each for each in self.lines if (each.path, each.line) == (path, line) and each.after),
            None,
        )
