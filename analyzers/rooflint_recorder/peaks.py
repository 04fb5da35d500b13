"""What a device reaches: large products in each precision, and large copies, timed.

A GPU's inputs are random: what it multiplies decides how much power it draws, and so its clock.
Nothing is changed that outlives the process, but for the time that it takes.
"""

from __future__ import annotations

import contextlib
import json
import os
import sys

from rooflint_recorder import facts
from rooflint_recorder.clocks import Clock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Timer = Callable[[Callable[[], object], float], float]

MARK = "rooflint-peaks "
"""Begins the line that the answer stands in: importing torch may print as well."""

SIDES = (1024, 2048, 4096, 8192, 16384)

GPU_BUDGET_S = 0.2
CPU_BUDGET_S = 0.1
"""For each size of a product, and for a copy (on a GPU twice that)."""

GPU_LONGEST_S = 0.2
CPU_LONGEST_S = 0.05
"""A product that takes longer by itself tells no more than the size before."""

CGROUPS = (
    ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory.current"),
    (
        "/sys/fs/cgroup/memory/memory.limit_in_bytes",
        "/sys/fs/cgroup/memory/memory.usage_in_bytes",
    ),
)
"""How much memory a container may have, and has: of cgroups' second version, and of their first."""

TENSOR_FP64 = ((8, 0), (9, 0), (10, 0))
"""Compute capabilities whose tensor cores multiply FP64, so that products tell of these."""


def main() -> None:
    """Measure each kind of GPU that torch sees here, else the CPU; print what was found."""
    import torch

    devices = list(_gpus()) if torch.cuda.is_available() else [{**facts.cpu(), **of_cpu()}]
    print(MARK + json.dumps({"versions": facts.versions(True), "devices": devices}))


def of_cpu() -> dict[str, Any]:
    """What the CPU reaches in this process, with the threads that it has given torch."""
    import torch

    products = {"fp64": torch.float64, "fp32": torch.float32, "bf16": torch.bfloat16}
    make_ones = _torch_itself().ones
    with torch.inference_mode():
        rates: dict[str, float] = {}
        for name, dtype in products.items():
            make = _product(dtype, "cpu")
            rate, _ = _product_rate(make, _cpu_s, 1 << 28, CPU_BUDGET_S, CPU_LONGEST_S)
            if rate:
                rates[name] = rate
        count = _copied_on_cpu()
        arrays = [make_ones(count, dtype=torch.float32, device="cpu") for _ in range(3)]
        copied = _copies(arrays[0], arrays[1], arrays[2])
        seconds = [(moved, _cpu_s(run, CPU_BUDGET_S)) for moved, run in copied]
    return {
        "flop_per_s": rates,
        "dram_bytes_per_s": max(moved / each_s for moved, each_s in seconds),
    }


def of_gpu(index: int) -> dict[str, Any]:
    """What one GPU, the current one, reaches; how much longer than the quickest runs took."""
    import torch

    cuda: Any = torch.cuda
    properties = cuda.get_device_properties(index)
    capability = (properties.major, properties.minor)
    rates: dict[str, float] = {}
    absent: dict[str, str] = {}
    spreads: list[float] = []
    timer = _Events(spreads)
    with torch.inference_mode():
        for name, make in _gpu_products(capability):
            room = cuda.mem_get_info()[0] // 2
            rate, reason = _product_rate(make, timer, room, GPU_BUDGET_S, GPU_LONGEST_S)
            if rate:
                rates[name] = rate
            else:
                absent[name] = reason
            cuda.empty_cache()
        torch.set_float32_matmul_precision("highest")
        free = cuda.mem_get_info()[0]
        count = min(1 << 28, free // 24)  # three arrays of FP32, half of what is free
        if count < getattr(properties, "L2_cache_size", 32 << 20):  # four times as many bytes
            sys.exit(f"only {free >> 20} MB of {properties.name} are free, too few to measure it")
        arrays = [torch.rand(count, device="cuda") for _ in range(3)]
        copied = _copies(arrays[0], arrays[1], arrays[2])
        seconds = [(moved, timer(run, 2 * GPU_BUDGET_S)) for moved, run in copied]
    return {
        "flop_per_s": rates,
        "dram_bytes_per_s": max(moved / each_s for moved, each_s in seconds),
        "absent": absent,
        "spread_ratio": _median(spreads),
    }


def _gpus() -> Iterator[dict[str, Any]]:
    """One of each kind: that with the most free memory."""
    import torch

    cuda: Any = torch.cuda
    best: dict[tuple[str, int], tuple[int, int]] = {}
    for index in range(cuda.device_count()):
        properties = cuda.get_device_properties(index)
        kind = (properties.name, properties.multi_processor_count)
        free = cuda.mem_get_info(index)[0]
        if free > best.get(kind, (-1, index))[0]:
            best[kind] = (free, index)
    for _, index in best.values():
        cuda.set_device(index)
        uuid = getattr(cuda.get_device_properties(index), "uuid", None)
        yield {**facts.gpu(), "uuid": str(uuid) if uuid else None, **of_gpu(index)}


# --- products ---------------------------------------------------------------------------


def _gpu_products(
    capability: tuple[int, int],
) -> Iterator[tuple[str, Callable[[int], Callable[[], object]]]]:
    """Name and maker of each precision's product; a maker may fail where torch or GPU cannot."""
    import torch

    rocm = bool(torch.version.hip)
    tensor_fp64 = not rocm and capability in TENSOR_FP64
    yield "tensor fp64" if tensor_fp64 else "fp64", _product(torch.float64, "cuda")
    torch.set_float32_matmul_precision("highest")
    yield "fp32", _product(torch.float32, "cuda")
    if capability >= (8, 0) and not rocm:
        torch.set_float32_matmul_precision("high")
        yield "tf32", _product(torch.float32, "cuda")
    if capability >= (8, 0) or rocm:  # older ones only imitate it
        yield "bf16", _product(torch.bfloat16, "cuda")
    yield "fp16", _product(torch.float16, "cuda")
    if capability >= (8, 9) or rocm:
        yield "fp8", _fp8_product(rocm and capability < (9, 5))
    if capability >= (7, 5) or rocm:
        yield "int8", _int8_product


def _product(dtype: Any, device: str) -> Callable[[int], Callable[[], object]]:
    torch = _torch_itself()

    def make(side: int) -> Callable[[], object]:
        # On a CPU this is the script's own process, whose random numbers are not ours to draw.
        fill = torch.randn if device == "cuda" else torch.ones
        a, b = (fill(side, side, device=device, dtype=dtype) for _ in range(2))
        out = torch.empty_like(a)
        return lambda: torch.mm(a, b, out=out)

    return make


def _torch_itself() -> Any:
    """Its functions, whatever the script has put in their place."""
    from torch import _C

    return vars(_C)["_VariableFunctions"]


def _fp8_product(other_zero: bool) -> Callable[[int], Callable[[], object]]:
    """AMD's first FP8 has no negative zero, and a type of its own."""
    import torch

    def make(side: int) -> Callable[[], object]:
        dtype: Any = torch.float8_e4m3fnuz if other_zero else torch.float8_e4m3fn
        a, b = (torch.randn(side, side, device="cuda").to(dtype) for _ in range(2))
        one = torch.ones((), device="cuda")
        torch_: Any = torch
        return lambda: torch_._scaled_mm(
            a, b.t(), scale_a=one, scale_b=one, out_dtype=torch.bfloat16, use_fast_accum=True
        )

    return make


def _int8_product(side: int) -> Callable[[], object]:
    import torch

    a, b = (
        torch.randint(-127, 127, (side, side), device="cuda", dtype=torch.int8) for _ in range(2)
    )
    torch_: Any = torch
    return lambda: torch_._int_mm(a, b.t())


def _product_rate(
    make: Callable[[int], Callable[[], object]],
    timer: Timer,
    room: int,
    budget_s: float,
    longest_s: float,
) -> tuple[float | None, str]:
    """The best rate of square products that grow until they tell no more; why there is none."""
    best, reason = None, "not enough memory is free"
    for side in SIDES:
        # 14 bytes an element: two inputs in FP32, before they are made smaller, and a result.
        if 14 * side**2 > room:
            break
        try:
            seconds = timer(make(side), budget_s)
        except (AttributeError, TypeError, NotImplementedError, RuntimeError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            break
        best = max(best or 0.0, 2 * side**3 / seconds)
        if 8 * seconds > longest_s:
            break
    return best, reason


# --- copies -----------------------------------------------------------------------------


def _copies(a: Any, b: Any, out: Any) -> list[tuple[int, Callable[[], object]]]:
    """Bytes moved, and an elementwise kernel that moves them: a scaled copy, and a triad."""
    torch = _torch_itself()
    size = a.numel() * a.element_size()
    return [
        (2 * size, lambda: torch.mul(a, 1.5, out=out)),
        (3 * size, lambda: torch.add(a, b, alpha=1.5, out=out)),
    ]


def _copied_on_cpu() -> int:
    """How many FP32 to copy: four times the last cache, at most a thirtieth of the free memory."""
    try:
        with open("/sys/devices/system/cpu/cpu0/cache/index3/size", encoding="utf-8") as file:
            cache_bytes = int(file.read().strip().rstrip("K")) << 10
    except (OSError, ValueError):
        cache_bytes = 32 << 20
    return max(1 << 20, min(4 * cache_bytes, 256 << 20, _free_bytes() // 30)) // 4


def _free_bytes() -> int:
    """Of the machine, or of the container that this runs in: beyond, it would be killed."""
    free = [4 << 30]
    with contextlib.suppress(OSError, ValueError, AttributeError):  # Linux knows, others may not
        free = [os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_AVPHYS_PAGES")]
    for limit, used in CGROUPS:
        with contextlib.suppress(OSError, ValueError):  # there is no limit, or it is "max"
            free.append(_number_in(limit) - _number_in(used))
    return min(free)


def _number_in(path: str) -> int:
    with open(path, encoding="utf-8") as file:
        return int(file.read())


# --- clocks -----------------------------------------------------------------------------


def _cpu_s(run: Callable[[], object], budget_s: float) -> float:
    """The quickest of some runs, the first one left out: others can only slow it."""
    run()
    best = float("inf")
    end = Clock.perf_counter() + budget_s
    while True:
        start = Clock.perf_counter()
        run()
        now = Clock.perf_counter()
        best = min(best, now - start)
        if now > end:
            return best


class _Events:
    """Times runs by the GPU's own clock: the median of batches that are long beside an event."""

    BATCH_S = 0.005

    def __init__(self, spreads: list[float]) -> None:
        self._spreads = spreads
        """How much longer than the quickest batch the median is, as a share of it."""

    def __call__(self, run: Callable[[], object], budget_s: float) -> float:
        for _ in range(3):
            run()
        once_s = self._batch_s(run, 1)
        size = max(1, min(200, round(self.BATCH_S / max(once_s, 1e-6))))
        self._batch_s(run, size)
        end = Clock.perf_counter() + budget_s
        batches: list[float] = []
        while len(batches) < 5 or Clock.perf_counter() < end:
            batches.append(self._batch_s(run, size) / size)
        median = _median(batches)
        self._spreads.append(median / min(batches) - 1)
        return median

    def _batch_s(self, run: Callable[[], object], size: int) -> float:
        import torch

        event: Any = torch.cuda.Event
        start, end = event(enable_timing=True), event(enable_timing=True)
        start.record()
        for _ in range(size):
            run()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) / 1e3


def _median(values: list[float]) -> float:
    # `statistics` makes classes from text while it is imported, and Python then no longer knows
    # that it is ending by an interrupt.
    ordered = sorted(values)
    middle = len(ordered) // 2
    return (ordered[middle] + ordered[-middle - 1]) / 2
