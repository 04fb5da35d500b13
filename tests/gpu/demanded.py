"""What is demanded of the kernels and products of `scripts/`, on a GPU or replayed."""

from __future__ import annotations

from dataclasses import dataclass

from gpu.measuring import Run, table

from rooflint.units import show_flop
from rooflint.verdicts import judge_kernel


@dataclass(frozen=True)
class Expected:
    """What limits a kernel, why, and words of its verdict; written before the first run."""

    limiter: str
    why: str
    says: tuple[str, ...] = ()


EXPECTED = {
    # Each of 32 neighbours reads its own sector, 32 KB from the next: 8 times the sectors that are
    # needed go through L2, while DRAM reads each once, since neighbours in the other direction
    # find it in the cache. (So it was measured on an H200 before: L2 96 %, DRAM 23 %.)
    "naive transpose": Expected("memory-bound", "strided loads", ("L2", "uncoalesced: 32 sectors")),
    # The same the other way round: loads in order, each store to a sector of its own.
    "naive transpose, Triton": Expected("memory-bound", "strided stores", ("uncoalesced: 32",)),
    # Every eighth float is a sector of its own: 32 bytes are read for 4 that are used.
    # DRAM is busy with it, and it is not done for all that.
    "strided copy": Expected(
        "memory-bound", "8 times the bytes", ("% of bandwidth", "uncoalesced: 32 sectors")
    ),
    # Rows of 256 bytes, a block of 16 threads each: 32 blocks fill a multiprocessor's slots with a
    # quarter of its threads, each with one load in flight. (H200: SMs 10 %, DRAM 14 %.)
    "embedding gather": Expected("latency-bound", "few loads in flight"),
    # A round loads and stores 469 values a thread, for 512 multiply-adds. Loads are found in L1,
    # which hands every store on: 5 GB, as fast as L2 takes them. (Before the first run L1 itself
    # was expected to bind, without a thought of stores.)
    "spilling kernel": Expected("memory-bound", "local memory", ("L2", "registers spill")),
    # 1,024 values: four blocks, over before the next is launched.
    "tiny-kernel chain": Expected("overhead-bound", "shorter than its launch"),
    # 8192³: 5,461 FLOPs a byte at least, the ridge is near 200.
    "big BF16 product": Expected("compute-bound", "far right of the ridge"),
    # 8,192 keys a query, heads of 128: all in shared memory, two products of 128 deep.
    "flash attention": Expected("compute-bound", "T·D products, no T² bytes"),
    # Five to ten FLOPs a value that is read once and written once: left of every ridge.
    "layer norm": Expected("memory-bound", "read once, write once", ("bandwidth",)),
    "softmax of short rows": Expected("memory-bound", "a warp a row", ("bandwidth",)),
    # A block of 1,024 threads a row, 40 registers each: one fits on a multiprocessor. It loads,
    # adds up at barriers and stores, and nothing of another row goes on meanwhile: half of all
    # warps, 39 % of DRAM. (Before the first run memory was expected, since its bytes are few.)
    "softmax": Expected("latency-bound", "one block a multiprocessor", ("neither",)),
    # Its log_softmax reads and writes 1.65 GB; what comes after is 8,192 values.
    "cross-entropy": Expected("memory-bound", "1.65 GB each way", ("bandwidth",)),
    # 16 warps on a GPU of over 100 multiprocessors.
    "reduction with bad occupancy": Expected("latency-bound", "16 warps in all"),
}


def missed_verdicts(kernels: Run) -> list[str]:
    """Kernels that got another verdict; all are printed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    for name, expected in EXPECTED.items():
        (line,) = (n for n, mark in kernels.lines_with(name).items() if mark == name)
        counted = kernels.counted(line)
        if not counted:
            rows.append((name, expected.limiter, "not measured", "", expected.why, ""))
            missed.append(name)
            continue
        verdict = judge_kernel(counted[0][0], kernels.recording)
        good = verdict.limiter == expected.limiter and all(
            word in verdict.reason for word in expected.says
        )
        roof = f"{verdict.roof_ratio:.0%}" if verdict.roof_ratio is not None else "-"
        got = verdict.limiter if good else f"{verdict.limiter} MISSED"
        rows.append((name, expected.limiter, got, roof, expected.why, verdict.reason))
        if not good:
            missed.append(f"{name}: {verdict.limiter}, {verdict.reason}")
    print(table(("kernel", "demanded", "got", "roof", "since", "reason"), rows))
    return missed


def missed_products(products: Run) -> list[str]:
    """Products whose executed operations are not those of their sizes; all are printed."""
    rows: list[tuple[str, ...]] = []
    missed: list[str] = []
    marks = {**products.lines_with("product"), **products.lines_with("odd")}
    for line, mark in sorted(marks.items()):
        kind, _, *sizes = mark.split()
        m, n, k = map(int, sizes)
        model, executed = 2 * m * n * k, executed_flop(products, line)
        ratio = executed / model
        # Whole tiles are computed: of an odd size more, and never less.
        good = abs(ratio - 1) <= 0.02 if kind == "product" else 1.0 <= ratio <= 1.3
        names = ", ".join(kernel.name[:32] for kernel in products.kernels_of(line))
        rows.append(
            (mark, show_flop(model), show_flop(executed), f"{ratio:.4f}", "" if good else "MISSED",
             names)
        )  # fmt: skip
        if not good:
            missed.append(mark)
    print(table(("product", "2·M·N·K", "executed", "ratio", "", "kernels"), rows))
    return missed


def executed_flop(run: Run, line: int) -> float:
    """All operations of a line in one step: a product may be several kernels."""
    return sum(
        kernel.launch_count / run.recording.step_count * sum(counters.flop_by_pipe.values())
        for kernel, counters in run.counted(line)
    )
