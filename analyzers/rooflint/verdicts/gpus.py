"""What a GPU can reach at most: one row per GPU, each with the public page that says so.

Rates are dense (datasheets print twice as much "with sparsity") and at the boost clock.
`fp32` is the ordinary FP32 pipe, `tf32`, `bf16`, `fp16`, `fp8` and `int8` are tensor cores;
`tensor fp64` stands beside `fp64` where tensor cores do FP64 too. On GeForce, half precision
is given with FP32 accumulation, which is what PyTorch uses: half of the rate in big print.
A GPU is found by the exact name that its driver gives; one that is not here is unknown.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from rooflint.model import Device, Peaks


@dataclass(frozen=True, slots=True)
class Gpu:
    """One row: its names, its multiprocessors (compute units on AMD) and its peaks."""

    names: tuple[str, ...]
    sm_count: int
    memory_gb: int
    dram_gb_per_s: float
    tflop_per_s: dict[str, float]
    source: str


@cache
def find_peaks(device: Device) -> Peaks | None:
    """The datasheet's roof for a device; `None`: not in the table, so not known."""
    name, profile = _split_mig(device.name)
    gpu = _find(name, device)
    if gpu is None:
        return None
    if profile is not None:
        return _slice(gpu, profile, device)
    if device.sm_count not in (None, gpu.sm_count) or not _has_memory(gpu, device):
        # Another chip, or a part of one, under the same name: its roof is not this row's.
        return None
    return _peaks(gpu, 1.0, 1.0)


@cache
def find_sm_count(device: Device) -> int | None:
    """Multiprocessors of a device: as the run saw them, else the table's."""
    if device.sm_count is not None:
        return device.sm_count
    name, profile = _split_mig(device.name)
    gpu = _find(name, device)
    return gpu.sm_count if gpu and profile is None else None


def _has_memory(gpu: Gpu, device: Device) -> bool:
    """Whether a device's memory is the row's: other memory has another bandwidth.

    What a maker calls a GB is 1e9 or 2**30 bytes, of which the driver keeps some for itself.
    """
    return device.memory_bytes is None or 0.9 < device.memory_bytes / 1e9 / gpu.memory_gb < 1.1


def _find(name: str, device: Device) -> Gpu | None:
    candidates = [gpu for gpu in GPUS if _plain(name) in {_plain(other) for other in gpu.names}]
    if len(candidates) > 1:
        # Chips that share a name are told apart by their multiprocessors.
        candidates = [gpu for gpu in candidates if gpu.sm_count == device.sm_count]
    return candidates[0] if candidates else None


def _plain(name: str) -> str:
    """A name without its maker, the marks and the case: tools differ in these."""
    words = re.sub(r"\((r|tm)\)|®|™", "", name.lower()).split()
    return " ".join(word for word in words if word not in _MAKERS)


_MAKERS = {"nvidia", "tesla", "geforce", "quadro", "amd", "instinct"}


def _split_mig(name: str) -> tuple[str, str | None]:
    """("NVIDIA A100-SXM4-40GB", "3g.20gb") of "NVIDIA A100-SXM4-40GB MIG 3g.20gb"."""
    match = re.fullmatch(r"(.+?)\s+MIG\s+(\S+)", name, re.IGNORECASE)
    return (match[1], match[2]) if match else (name, None)


def _slice(gpu: Gpu, profile: str, device: Device) -> Peaks | None:
    """The roof of a MIG slice: multiprocessors and memory are cut separately.

    https://docs.nvidia.com/datacenter/tesla/mig-user-guide/supported-mig-profiles.html
    """
    match = re.match(r"\d+g\.(\d+)gb", profile, re.IGNORECASE)
    if match is None or device.sm_count is None or device.sm_count > gpu.sm_count:
        return None
    slices = 4 if gpu.sm_count == 56 else 8  # The A30 has four memory slices, all others eight.
    memory_ratio = max(1, round(slices * int(match[1]) / gpu.memory_gb)) / slices
    return _peaks(gpu, device.sm_count / gpu.sm_count, min(1.0, memory_ratio))


def _peaks(gpu: Gpu, compute_ratio: float, memory_ratio: float) -> Peaks:
    flop_per_s = {name: 1e12 * rate * compute_ratio for name, rate in gpu.tflop_per_s.items()}
    dram = 1e9 * gpu.dram_gb_per_s * memory_ratio
    return Peaks(flop_per_s, dram, provenance="estimated", source=gpu.source)


def _rates(
    fp64: float,
    fp32: float,
    *,
    tensor_fp64: float | None = None,
    tf32: float | None = None,
    half: float | None = None,
    bf16: bool = True,
    fp8: float | None = None,
    int8: float | None = None,
) -> dict[str, float]:
    rates = {
        "fp64": fp64,
        "tensor fp64": tensor_fp64,
        "fp32": fp32,
        "tf32": tf32,
        "bf16": half if bf16 else None,
        "fp16": half,
        "fp8": fp8,
        "int8": int8,
    }
    return {name: rate for name, rate in rates.items() if rate is not None}


_V100 = "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100-datasheet-update-us-1165301-r5.pdf"
_V100S = (
    "https://images.nvidia.com/content/technologies/volta/pdf/volta-v100s-datasheet-us-1165301.pdf"
)
_DGX_STATION = "https://documents.pub/document/white-paper-nvidia-dgx-station-2019-04-23-43-nvidia-container-runtime-for-docker.html"
_T4 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/tesla-t4/t4-tensor-core-datasheet-951643.pdf"
_TURING = "https://images.nvidia.com/aem-dam/en-zz/Solutions/design-visualization/technologies/turing-architecture/NVIDIA-Turing-Architecture-Whitepaper.pdf"
_A100 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a100/pdf/nvidia-a100-datasheet-nvidia-us-2188504-web.pdf"
_A100_40 = "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/nvidia-ampere-architecture-whitepaper.pdf"
_A30 = "https://www.nvidia.com/content/dam/en-zz/Solutions/data-center/products/a30-gpu/pdf/a30-datasheet.pdf"
_A10 = "https://www.nvidia.com/content/dam/en-zz/Solutions/Data-Center/a10/pdf/a10-datasheet.pdf"
_A10G = (
    "https://d1.awsstatic.com/product-marketing/ec2/NVIDIA_AWS_A10G_DataSheet_FINAL_02_17_2022.pdf"
)
_A40 = "https://images.nvidia.com/content/Solutions/data-center/a40/nvidia-a40-datasheet.pdf"
_AMPERE = (
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf"
)
_L4 = "https://resources.nvidia.com/en-us-data-center-overview/l4-gpu-datasheet"
_L40 = "https://www.nvidia.com/en-us/data-center/l40/"
_L40S = "https://resources.nvidia.com/en-us-l40s/l40s-datasheet-28413"
_ADA = "https://images.nvidia.com/aem-dam/Solutions/geforce/ada/nvidia-ada-gpu-architecture.pdf"
_ADA_PRO = "https://images.nvidia.com/aem-dam/en-zz/Solutions/technologies/NVIDIA-ADA-GPU-PROVIZ-Architecture-Whitepaper_1.1.pdf"
_HOPPER = "https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper"
_H100 = "https://www.nvidia.com/en-us/data-center/h100/"
_H200 = "https://www.nvidia.com/en-us/data-center/h200/"
_GH200 = "https://resources.nvidia.com/en-us-grace-cpu/grace-hopper-superchip"
_B200 = "https://resources.nvidia.com/en-us-blackwell-architecture"
_BLACKWELL = "https://images.nvidia.com/aem-dam/Solutions/geforce/blackwell/nvidia-rtx-blackwell-gpu-architecture.pdf"
_MI210 = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi210.html"
_MI250 = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250.html"
_MI250X = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html"
_MI300X = "https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html"

# The driver calls both the MI250 and the MI250X so; their compute units tell them apart.
_MI250_NAMES = ("MI250X / MI250", "MI250X/MI250")

_GA100 = _rates(9.7, 19.5, tensor_fp64=19.5, tf32=156, half=312, int8=624)
_GH100 = _rates(34, 67, tensor_fp64=67, tf32=494, half=989, fp8=1979, int8=1979)
_GH100_NVL = _rates(30, 60, tensor_fp64=60, tf32=417.5, half=835.5, fp8=1670.5, int8=1670.5)

GPUS: tuple[Gpu, ...] = (
    # Volta: tensor cores take FP16 only.
    Gpu(("V100-SXM2-16GB",), 80, 16, 900, _rates(7.8, 15.7, half=125, bf16=False), _V100),
    Gpu(("V100-SXM2-32GB",), 80, 32, 900, _rates(7.8, 15.7, half=125, bf16=False), _V100),
    Gpu(("V100-PCIE-16GB",), 80, 16, 900, _rates(7, 14, half=112, bf16=False), _V100),
    Gpu(("V100-PCIE-32GB",), 80, 32, 900, _rates(7, 14, half=112, bf16=False), _V100),
    # The DGX Station's: water-cooled, with NVLink, as fast as the SXM2.
    Gpu(("V100-DGXS-16GB",), 80, 16, 900, _rates(7.8, 15.7, half=125, bf16=False), _DGX_STATION),
    Gpu(("V100-DGXS-32GB",), 80, 32, 900, _rates(7.8, 15.7, half=125, bf16=False), _DGX_STATION),
    Gpu(("V100S-PCIE-32GB",), 80, 32, 1134, _rates(8.2, 16.4, half=130, bf16=False), _V100S),
    # Turing: FP64 at 1/32 of FP32.
    Gpu(("T4",), 40, 16, 320, _rates(0.253, 8.1, half=65, bf16=False, int8=130), _T4),
    Gpu(
        ("RTX 2080 Ti",),
        68,
        11,
        616,
        _rates(0.42, 13.4, half=53.8, bf16=False, int8=215.2),
        _TURING,
    ),
    # Ampere, data centre.
    # PG509 is a board of NVIDIA's that large sites name by its number; whatever its form, an A100
    # with 40 GB has these peaks.
    Gpu(("A100-SXM4-40GB", "A100-PG509-200"), 108, 40, 1555, _GA100, _A100_40),
    Gpu(("A100-PCIE-40GB",), 108, 40, 1555, _GA100, _A100_40),
    Gpu(("A100-SXM4-80GB",), 108, 80, 2039, _GA100, _A100),
    Gpu(("A100 80GB PCIe",), 108, 80, 1935, _GA100, _A100),
    Gpu(
        ("A30",),
        56,
        24,
        933,
        _rates(5.2, 10.3, tensor_fp64=10.3, tf32=82, half=165, int8=330),
        _A30,
    ),
    # Ampere, graphics: FP64 at 1/64 of FP32.
    Gpu(("A10",), 72, 24, 600, _rates(0.488, 31.2, tf32=62.5, half=125, int8=250), _A10),
    Gpu(("A10G",), 80, 24, 600, _rates(0.547, 35, tf32=35, half=70, int8=140), _A10G),
    Gpu(("A40",), 84, 48, 696, _rates(0.584, 37.4, tf32=74.8, half=149.7, int8=299.3), _A40),
    Gpu(
        ("RTX A6000",), 84, 48, 768, _rates(0.605, 38.7, tf32=77.4, half=154.8, int8=309.7), _AMPERE
    ),
    Gpu(("RTX 3070",), 46, 8, 448, _rates(0.318, 20.3, tf32=20.3, half=40.6, int8=162.6), _AMPERE),
    Gpu(("RTX 3080",), 68, 10, 760, _rates(0.465, 29.8, tf32=29.8, half=59.5, int8=238), _AMPERE),
    Gpu(("RTX 3090",), 82, 24, 936, _rates(0.556, 35.6, tf32=35.6, half=71, int8=284), _AMPERE),
    # Ada.
    Gpu(("L4",), 58, 24, 300, _rates(0.473, 30.3, tf32=60, half=121, fp8=242.5, int8=242.5), _L4),
    Gpu(("L40",), 142, 48, 864, _rates(1.41, 90.5, tf32=90.5, half=181, fp8=362, int8=362), _L40),
    Gpu(("L40S",), 142, 48, 864, _rates(1.43, 91.6, tf32=183, half=362, fp8=733, int8=733), _L40S),
    Gpu(
        ("RTX 6000 Ada Generation",),
        142,
        48,
        960,
        _rates(1.42, 91.1, tf32=182.1, half=364.2, fp8=728.5, int8=728.5),
        _ADA_PRO,
    ),
    Gpu(
        ("RTX 4080",),
        76,
        16,
        717,
        _rates(0.761, 48.7, tf32=48.7, half=97.5, fp8=194.9, int8=389.9),
        _ADA,
    ),
    Gpu(
        ("RTX 4090",),
        128,
        24,
        1008,
        _rates(1.29, 82.6, tf32=82.6, half=165.2, fp8=330.3, int8=660.6),
        _ADA,
    ),
    # Hopper.
    # Boards that are called "NVIDIA H100" alone are told apart by multiprocessors and memory; what
    # those with 96 GB reach depends on which memory it is, and is not known.
    Gpu(("H100 80GB HBM3", "H100"), 132, 80, 3350, _GH100, _H100),
    Gpu(
        ("H100 PCIe", "H100"),
        114,
        80,
        2039,
        _rates(25.6, 51.2, tensor_fp64=51.2, tf32=378, half=756, fp8=1513, int8=1513),
        _HOPPER,
    ),
    Gpu(("H100 NVL",), 132, 94, 3938, _GH100_NVL, _H100),
    Gpu(("H200",), 132, 141, 4800, _GH100, _H200),
    Gpu(("H200 NVL",), 132, 141, 4800, _GH100_NVL, _H200),
    Gpu(("GH200 480GB", "GH200 120GB"), 132, 96, 4000, _GH100, _GH200),
    Gpu(("GH200 144G HBM3e",), 132, 144, 4900, _GH100, _GH200),
    # Blackwell.
    Gpu(
        ("B200",),
        148,
        180,
        8000,
        _rates(37, 75, tensor_fp64=37, tf32=1125, half=2250, fp8=4500, int8=4500),
        _B200,
    ),
    Gpu(
        ("RTX 5070",),
        48,
        12,
        672,
        _rates(0.482, 30.9, tf32=30.9, half=61.7, fp8=123.5, int8=246.9),
        _BLACKWELL,
    ),
    Gpu(
        ("RTX 5080",),
        84,
        16,
        960,
        _rates(0.88, 56.3, tf32=56.3, half=112.6, fp8=225.1, int8=450.2),
        _BLACKWELL,
    ),
    Gpu(
        ("RTX 5090",),
        170,
        32,
        1792,
        _rates(1.64, 104.8, tf32=104.8, half=209.5, fp8=419, int8=838),
        _BLACKWELL,
    ),
    # AMD: FP64 and FP32 by matrix cores, which the BLAS libraries use. PyTorch sees each of the
    # two dies of an MI250 as a device, so a row is half of the datasheet's card.
    Gpu(("MI210",), 104, 64, 1638, _rates(45.3, 45.3, half=181, int8=181), _MI210),
    Gpu(("MI250", *_MI250_NAMES), 104, 64, 1638, _rates(45.3, 45.3, half=181, int8=181), _MI250),
    Gpu(
        ("MI250X", *_MI250_NAMES),
        110,
        64,
        1638,
        _rates(47.9, 47.9, half=191.5, int8=191.5),
        _MI250X,
    ),
    Gpu(
        ("MI300X",),
        304,
        192,
        5300,
        _rates(163.4, 163.4, tf32=653.7, half=1307.4, fp8=2614.9, int8=2614.9),
        _MI300X,
    ),
)
