"""What a GPU can reach at most: one row per GPU, each with the public page that says so.

Rates are dense (datasheets print twice as much "with sparsity") and at the boost clock.
`fp32` is the ordinary FP32 pipe, `tf32`, `bf16`, `fp16`, `fp8` and `int8` are tensor cores;
`tensor fp64` stands beside `fp64` where tensor cores do FP64 too. On GeForce, half precision
is given with FP32 accumulation, which is what PyTorch uses: half of the rate in big print.
A GPU is found by the exact name that its driver gives; one that is not here is unknown, to be
measured by `rooflint doctor --measure`: laptops, whose clock is their maker's choice, slices of
vGPUs, and cards that were sold with several memories under one name.
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
        # Chips that share a name are told apart by their multiprocessors, then by their memory.
        candidates = [gpu for gpu in candidates if gpu.sm_count == device.sm_count]
    if len(candidates) > 1:
        sized = device.memory_bytes is not None
        candidates = [gpu for gpu in candidates if sized and _has_memory(gpu, device)]
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
    match = re.match(r"\d+g\.(\d{1,6})gb", profile, re.IGNORECASE)
    if match is None or device.sm_count is None or device.sm_count > gpu.sm_count:
        return None
    # Memory is cut into eighths (on an A30 and an RTX PRO 6000 into quarters, which are two).
    memory_ratio = max(1, round(8 * int(match[1]) / gpu.memory_gb)) / 8
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


@dataclass(frozen=True, slots=True)
class _Chip:
    """FLOPs that one multiprocessor of a design does in a cycle, and the paper that says so."""

    fp32: int
    tensor: dict[str, int]
    source: str
    fp64: int = 4

    def card(
        self,
        name: str,
        sm_count: int,
        memory_gb: int,
        dram_gb_per_s: float,
        boost_mhz: int,
        page: str,
    ) -> Gpu:
        """A card of this design, by its clock."""
        per_cycle = {"fp64": self.fp64, "fp32": self.fp32, **self.tensor}
        rates = {
            precision: flop * sm_count * boost_mhz / 1e6 for precision, flop in per_cycle.items()
        }
        source = f"{_CARDS}{page} (clock), {self.source} (rates a cycle)"
        return Gpu((name,), sm_count, memory_gb, dram_gb_per_s, rates, source)


_CARDS = "https://www.techpowerup.com/gpu-specs/"
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
_BLACKWELL_PRO = "https://www.nvidia.com/content/dam/en-zz/Solutions/design-visualization/quadro-product-literature/NVIDIA-RTX-Blackwell-PRO-GPU-Architecture-v1.0.pdf"
_PRO_6000_SERVER = "https://www.nvidia.com/en-us/data-center/rtx-pro-6000-blackwell-server-edition/"
_GB200 = "https://www.nvidia.com/en-us/data-center/gb200-nvl72/"
_HGX = "https://www.nvidia.com/en-us/data-center/hgx/"
_P100 = "https://images.nvidia.com/content/tesla/pdf/nvidia-tesla-p100-PCIe-datasheet.pdf"
_P100_SXM = (
    "https://images.nvidia.com/content/pdf/tesla/whitepaper/pascal-architecture-whitepaper.pdf"
)
_H20 = "https://zangshuxian.com/new/674733024499207168"
_ORIN = "https://www.nvidia.com/content/dam/en-zz/Solutions/gtcf21/jetson-orin/nvidia-jetson-agx-orin-technical-brief.pdf"
_MI100 = "https://www.amd.com/en/products/accelerators/instinct/mi100.html"
_MI300A = "https://www.amd.com/en/products/accelerators/instinct/mi300/mi300a.html"
_MI325X = "https://www.amd.com/en/products/accelerators/instinct/mi300/mi325x.html"
_MI350X = "https://www.amd.com/en/products/accelerators/instinct/mi350/mi350x.html"
_MI355X = "https://www.amd.com/en/products/accelerators/instinct/mi350/mi355x.html"
_MI210 = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi210.html"
_MI250 = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250.html"
_MI250X = "https://www.amd.com/en/products/accelerators/instinct/mi200/mi250x.html"
_MI300X = "https://www.amd.com/en/products/accelerators/instinct/mi300/mi300x.html"

# The driver calls both the MI250 and the MI250X so; their compute units tell them apart.
_MI250_NAMES = ("MI250X / MI250", "MI250X/MI250")

_GA100 = _rates(9.7, 19.5, tensor_fp64=19.5, tf32=156, half=312, int8=624)
_GH100 = _rates(34, 67, tensor_fp64=67, tf32=494, half=989, fp8=1979, int8=1979)
_GH100_NVL = _rates(30, 60, tensor_fp64=60, tf32=417.5, half=835.5, fp8=1670.5, int8=1670.5)

# A multiprocessor's FLOPs in a cycle; tensor cores by precision. Professional cards of a chip
# accumulate half precision in FP32 at full rate, GeForce cards at half of it.
_VOLTA = _Chip(128, {"fp16": 1024}, _V100, fp64=64)
_TURING_GEFORCE = _Chip(128, {"fp16": 512, "int8": 2048}, _TURING)
_TURING_QUADRO = _Chip(128, {"fp16": 1024, "int8": 2048}, _TURING)
_AMPERE_GEFORCE = _Chip(256, {"tf32": 256, "bf16": 512, "fp16": 512, "int8": 2048}, _AMPERE)
_AMPERE_PRO = _Chip(256, {"tf32": 512, "bf16": 1024, "fp16": 1024, "int8": 2048}, _AMPERE)
_ADA_GEFORCE = _Chip(256, {"tf32": 256, "bf16": 512, "fp16": 512, "fp8": 1024, "int8": 2048}, _ADA)
_ADA_RTX = _Chip(
    256, {"tf32": 512, "bf16": 1024, "fp16": 1024, "fp8": 2048, "int8": 2048}, _ADA_PRO
)
_BLACKWELL_GEFORCE = _Chip(
    256, {"tf32": 256, "bf16": 512, "fp16": 512, "fp8": 1024, "int8": 2048}, _BLACKWELL
)
_BLACKWELL_RTX = _Chip(
    256, {"tf32": 512, "bf16": 1024, "fp16": 1024, "fp8": 2048, "int8": 2048}, _BLACKWELL_PRO
)
# The GTX 16 cards have no tensor cores, but FP16 at twice the rate of FP32.
_TURING_GTX = _Chip(128, {"fp16": 256}, _TURING)
_ORIN_GPU = _Chip(256, {"tf32": 1024, "bf16": 2048, "fp16": 2048, "int8": 4096}, _ORIN)

GPUS: tuple[Gpu, ...] = (
    # Pascal: FP16 without tensor cores, INT8 by a dot product of four.
    Gpu(("P100-PCIE-16GB",), 56, 16, 732, _rates(4.7, 9.3, half=18.7, bf16=False), _P100),
    Gpu(("P100-SXM2-16GB",), 56, 16, 732, _rates(5.3, 10.6, half=21.2, bf16=False), _P100_SXM),
    # Volta: tensor cores take FP16 only.
    Gpu(("V100-SXM2-16GB",), 80, 16, 900, _rates(7.8, 15.7, half=125, bf16=False), _V100),
    Gpu(("V100-SXM2-32GB",), 80, 32, 900, _rates(7.8, 15.7, half=125, bf16=False), _V100),
    Gpu(("V100-PCIE-16GB",), 80, 16, 900, _rates(7, 14, half=112, bf16=False), _V100),
    Gpu(("V100-PCIE-32GB",), 80, 32, 900, _rates(7, 14, half=112, bf16=False), _V100),
    # The DGX Station's: water-cooled, with NVLink, as fast as the SXM2.
    Gpu(("V100-DGXS-16GB",), 80, 16, 900, _rates(7.8, 15.7, half=125, bf16=False), _DGX_STATION),
    Gpu(("V100-DGXS-32GB",), 80, 32, 900, _rates(7.8, 15.7, half=125, bf16=False), _DGX_STATION),
    Gpu(("V100S-PCIE-32GB",), 80, 32, 1134, _rates(8.2, 16.4, half=130, bf16=False), _V100S),
    _VOLTA.card("TITAN V", 80, 12, 652, 1455, "titan-v.c3051"),
    # Turing: FP64 at 1/32 of FP32. Laptops have the same names, and slower clocks.
    _TURING_GTX.card("GTX 1650 SUPER", 20, 4, 192, 1725, "geforce-gtx-1650-super.c3411"),
    _TURING_GTX.card("GTX 1660", 22, 6, 192, 1785, "geforce-gtx-1660.c3365"),
    _TURING_GTX.card("GTX 1660 SUPER", 22, 6, 336, 1785, "geforce-gtx-1660-super.c3458"),
    _TURING_GTX.card("GTX 1660 Ti", 24, 6, 288, 1770, "geforce-gtx-1660-ti.c3364"),
    _TURING_GEFORCE.card("RTX 2060", 30, 6, 336, 1680, "geforce-rtx-2060.c3310"),
    _TURING_GEFORCE.card("RTX 2060", 34, 12, 336, 1650, "geforce-rtx-2060-12-gb.c3836"),
    _TURING_GEFORCE.card("RTX 2060 SUPER", 34, 8, 448, 1650, "geforce-rtx-2060-super.c3441"),
    _TURING_GEFORCE.card("RTX 2070", 36, 8, 448, 1620, "geforce-rtx-2070.c3252"),
    _TURING_GEFORCE.card("RTX 2070 SUPER", 40, 8, 448, 1770, "geforce-rtx-2070-super.c3440"),
    _TURING_GEFORCE.card("RTX 2080", 46, 8, 448, 1710, "geforce-rtx-2080.c3224"),
    _TURING_GEFORCE.card("RTX 2080 SUPER", 48, 8, 496, 1815, "geforce-rtx-2080-super.c3439"),
    _TURING_QUADRO.card("RTX 4000", 36, 8, 416, 1545, "quadro-rtx-4000.c3336"),
    _TURING_QUADRO.card("RTX 5000", 48, 16, 448, 1815, "quadro-rtx-5000.c3308"),
    _TURING_QUADRO.card("RTX 6000", 72, 24, 672, 1770, "quadro-rtx-6000.c3307"),
    _TURING_QUADRO.card("RTX 8000", 72, 48, 672, 1770, "quadro-rtx-8000.c3306"),
    _TURING_QUADRO.card("TITAN RTX", 72, 24, 672, 1770, "titan-rtx.c3311"),
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
    # An A800 is an A100 whose links to others are slower.
    Gpu(("A100-SXM4-40GB", "A100-PG509-200"), 108, 40, 1555, _GA100, _A100_40),
    Gpu(("A100-PCIE-40GB", "A800 40GB Active"), 108, 40, 1555, _GA100, _A100_40),
    Gpu(("A100-SXM4-80GB", "A800-SXM4-80GB"), 108, 80, 2039, _GA100, _A100),
    Gpu(("A100 80GB PCIe", "A800 80GB PCIe"), 108, 80, 1935, _GA100, _A100),
    Gpu(
        ("A30",),
        56,
        24,
        933,
        _rates(5.2, 10.3, tensor_fp64=10.3, tf32=82, half=165, int8=330),
        _A30,
    ),
    # Ampere, graphics: FP64 at 1/64 of FP32.
    _AMPERE_PRO.card("A2", 10, 16, 200, 1770, "a2.c3848"),
    # Four GPUs on one card, each a device of its own.
    _AMPERE_PRO.card("A16", 10, 16, 200, 1755, "a16-pcie.c3794"),
    Gpu(("A10",), 72, 24, 600, _rates(0.488, 31.2, tf32=62.5, half=125, int8=250), _A10),
    Gpu(("A10G",), 80, 24, 600, _rates(0.547, 35, tf32=35, half=70, int8=140), _A10G),
    Gpu(("A40",), 84, 48, 696, _rates(0.584, 37.4, tf32=74.8, half=149.7, int8=299.3), _A40),
    Gpu(
        ("RTX A6000",), 84, 48, 768, _rates(0.605, 38.7, tf32=77.4, half=154.8, int8=309.7), _AMPERE
    ),
    _AMPERE_PRO.card("RTX A2000", 26, 6, 288, 1200, "rtx-a2000.c3820"),
    _AMPERE_PRO.card("RTX A2000 12GB", 26, 12, 288, 1200, "rtx-a2000-12-gb.c3853"),
    _AMPERE_PRO.card("RTX A4000", 48, 16, 448, 1560, "rtx-a4000.c3756"),
    _AMPERE_PRO.card("RTX A4500", 56, 20, 640, 1650, "rtx-a4500.c3849"),
    _AMPERE_PRO.card("RTX A5000", 64, 24, 768, 1695, "rtx-a5000.c3748"),
    _AMPERE_PRO.card("RTX A5500", 80, 24, 768, 1665, "rtx-a5500.c3901"),
    _AMPERE_GEFORCE.card("RTX 3050", 20, 8, 224, 1777, "geforce-rtx-3050-8-gb.c3858"),
    _AMPERE_GEFORCE.card("RTX 3050", 18, 6, 168, 1470, "geforce-rtx-3050-6-gb.c4188"),
    _AMPERE_GEFORCE.card("RTX 3060", 28, 12, 360, 1777, "geforce-rtx-3060-12-gb.c3682"),
    _AMPERE_GEFORCE.card("RTX 3060", 28, 8, 240, 1777, "geforce-rtx-3060-8-gb.c3937"),
    Gpu(("RTX 3070",), 46, 8, 448, _rates(0.318, 20.3, tf32=20.3, half=40.6, int8=162.6), _AMPERE),
    _AMPERE_GEFORCE.card("RTX 3070 Ti", 48, 8, 608, 1770, "geforce-rtx-3070-ti.c3675"),
    Gpu(("RTX 3080",), 68, 10, 760, _rates(0.465, 29.8, tf32=29.8, half=59.5, int8=238), _AMPERE),
    _AMPERE_GEFORCE.card("RTX 3080", 70, 12, 912, 1710, "geforce-rtx-3080-12-gb.c3834"),
    _AMPERE_GEFORCE.card("RTX 3080 Ti", 80, 12, 912, 1665, "geforce-rtx-3080-ti.c3735"),
    Gpu(("RTX 3090",), 82, 24, 936, _rates(0.556, 35.6, tf32=35.6, half=71, int8=284), _AMPERE),
    _AMPERE_GEFORCE.card("RTX 3090 Ti", 84, 24, 1008, 1860, "geforce-rtx-3090-ti.c3829"),
    # A Jetson's GPU shares the CPU's memory; the smaller modules have one name and many clocks.
    _ORIN_GPU.card("Orin", 16, 64, 205, 1300, "jetson-agx-orin-64-gb.c4085"),
    _ORIN_GPU.card("Orin", 14, 32, 205, 930, "jetson-agx-orin-32-gb.c4084"),
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
    _ADA_RTX.card("RTX 2000 Ada Generation", 22, 16, 256, 2130, "rtx-2000-ada-generation.c4199"),
    _ADA_RTX.card(
        "RTX 4000 SFF Ada Generation", 48, 20, 280, 1560, "rtx-4000-sff-ada-generation.c4139"
    ),
    _ADA_RTX.card("RTX 4000 Ada Generation", 48, 20, 360, 2175, "rtx-4000-ada-generation.c4171"),
    _ADA_RTX.card("RTX 4500 Ada Generation", 60, 24, 432, 2580, "rtx-4500-ada-generation.c4172"),
    _ADA_RTX.card("RTX 5000 Ada Generation", 100, 32, 576, 2550, "rtx-5000-ada-generation.c4152"),
    _ADA_RTX.card("RTX 5880 Ada Generation", 110, 48, 864, 2460, "rtx-5880-ada-generation.c4191"),
    _ADA_GEFORCE.card("RTX 4060", 24, 8, 272, 2460, "geforce-rtx-4060.c4107"),
    _ADA_GEFORCE.card("RTX 4060 Ti", 34, 8, 288, 2535, "geforce-rtx-4060-ti-8-gb.c3890"),
    _ADA_GEFORCE.card("RTX 4060 Ti", 34, 16, 288, 2535, "geforce-rtx-4060-ti-16-gb.c4155"),
    # A few later ones have GDDR6, and 480 GB/s.
    _ADA_GEFORCE.card("RTX 4070", 46, 12, 504, 2475, "geforce-rtx-4070.c3924"),
    _ADA_GEFORCE.card("RTX 4070 SUPER", 56, 12, 504, 2475, "geforce-rtx-4070-super.c4186"),
    _ADA_GEFORCE.card("RTX 4070 Ti", 60, 12, 504, 2610, "geforce-rtx-4070-ti.c3950"),
    _ADA_GEFORCE.card("RTX 4070 Ti SUPER", 66, 16, 672, 2610, "geforce-rtx-4070-ti-super.c4187"),
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
    _ADA_GEFORCE.card("RTX 4080 SUPER", 80, 16, 736, 2550, "geforce-rtx-4080-super.c4182"),
    _ADA_GEFORCE.card("RTX 4090 D", 114, 24, 1008, 2520, "geforce-rtx-4090-d.c4189"),
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
    Gpu(("H20",), 78, 96, 4000, _rates(1, 44, tf32=74, half=148, fp8=296, int8=296), _H20),
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
        ("GB200",),
        152,
        186,
        8000,
        _rates(40, 80, tensor_fp64=40, tf32=1250, half=2500, fp8=5000, int8=5000),
        _GB200,
    ),
    Gpu(("B300 SXM6 AC",), 148, 288, 8000, _rates(1.25, 75, tf32=1125, half=2250, fp8=4500), _HGX),
    Gpu(
        ("RTX PRO 6000 Blackwell Server Edition",),
        188,
        96,
        1597,
        _rates(1.88, 120, tf32=240, half=480, fp8=960, int8=960),
        _PRO_6000_SERVER,
    ),
    _BLACKWELL_RTX.card(
        "RTX PRO 6000 Blackwell Workstation Edition",
        *(188, 96, 1792, 2617),
        "rtx-pro-6000-blackwell.c4272",
    ),
    _BLACKWELL_RTX.card(
        "RTX PRO 6000 Blackwell Max-Q Workstation Edition",
        *(188, 96, 1792, 2280),
        "rtx-pro-6000-blackwell-max-q.c4273",
    ),
    _BLACKWELL_GEFORCE.card("RTX 5050", 20, 8, 320, 2572, "geforce-rtx-5050.c4220"),
    _BLACKWELL_GEFORCE.card("RTX 5060", 30, 8, 448, 2497, "geforce-rtx-5060.c4219"),
    _BLACKWELL_GEFORCE.card("RTX 5060 Ti", 36, 8, 448, 2572, "geforce-rtx-5060-ti-8-gb.c4246"),
    _BLACKWELL_GEFORCE.card("RTX 5060 Ti", 36, 16, 448, 2572, "geforce-rtx-5060-ti-16-gb.c4292"),
    Gpu(
        ("RTX 5070",),
        48,
        12,
        672,
        _rates(0.482, 30.9, tf32=30.9, half=61.7, fp8=123.5, int8=246.9),
        _BLACKWELL,
    ),
    _BLACKWELL_GEFORCE.card("RTX 5070 Ti", 70, 16, 896, 2452, "geforce-rtx-5070-ti.c4243"),
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
    Gpu(
        ("MI100",),
        120,
        32,
        1229,
        {"fp64": 11.5, "fp32": 46.1, "bf16": 92.3, "fp16": 184.6, "int8": 184.6},
        _MI100,
    ),
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
    Gpu(
        ("MI300A",),
        228,
        128,
        5300,
        _rates(122.6, 122.6, tf32=490.3, half=980.6, fp8=1961.2, int8=1961.2),
        _MI300A,
    ),
    Gpu(
        ("MI325X",),
        304,
        256,
        6000,
        _rates(163.4, 163.4, tf32=653.7, half=1307.4, fp8=2614.9, int8=2614.9),
        _MI325X,
    ),
    # CDNA 4 does TF32 by several BF16 products.
    Gpu(
        ("MI350X",),
        256,
        288,
        8000,
        _rates(72.1, 144.2, half=2306.9, fp8=4613.7, int8=4613.7),
        _MI350X,
    ),
    Gpu(
        ("MI355X",),
        256,
        288,
        8000,
        _rates(78.6, 157.3, half=2516.6, fp8=5033.2, int8=5033.2),
        _MI355X,
    ),
)
