"""docs/gpus.md ends in the table of GPUs: `pytest --accept` writes it anew."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from rooflint.units import DASH, show_number
from rooflint.verdicts.gpus import GPUS, Gpu

PAGE = Path(__file__).parent.parent / "docs" / "gpus.md"
TITLE = "## The table\n"


def test_the_page_of_gpus_has_the_table(expect: Callable[[str, Path], None]) -> None:
    before, title, _ = PAGE.read_text(encoding="utf-8").partition(TITLE)
    expect(before + title + table(), PAGE)


def table() -> str:
    titles = ("GPU", "SMs", "memory", "GB/s", "FP64", "FP32", "TF32", "BF16", "FP16", "FP8", "INT8")
    titles = (*titles, "ridge", "source")
    text = (
        "\nTFLOP/s, dense; FP64 by tensor cores where they do it. The ridge is that of BF16, else"
        " FP16, in FLOPs a byte.\n\n"
    )
    head = f"| {' | '.join(titles)} |\n|{'---|' * len(titles)}\n"
    return text + head + "".join(map(row, GPUS))


def row(gpu: Gpu) -> str:
    rates = gpu.tflop_per_s
    fp64 = rates.get("tensor fp64", rates["fp64"])
    others = (rates.get(name) for name in ("fp32", "tf32", "bf16", "fp16", "fp8", "int8"))
    shown = [show_number(rate) if rate else DASH for rate in (fp64, *others)]
    half = rates.get("bf16") or rates["fp16"]
    links = " ".join(
        f"[{n}]({word})" for n, word in enumerate(
            (word for word in gpu.source.split() if word.startswith("https://")), 1
        )
    )  # fmt: skip
    ridge = show_number(1e3 * half / gpu.dram_gb_per_s)
    cells = (
        ", ".join(gpu.names),
        str(gpu.sm_count),
        f"{gpu.memory_gb} GB",
        show_number(gpu.dram_gb_per_s),
        *shown,
        ridge,
        links,
    )
    return f"| {' | '.join(cells)} |\n"
