"""The rules against operations of which it was measured whether they make the host wait.

Each operation is put into a training step; it must have a finding if and only if it waited.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import rooflint
from rooflint.model import Finding
from rooflint.tables.programs import THEN, Program, read_programs

FOLDER = Path(__file__).parent / "measured"

SETUP = """
import collections, io, json, logging, math, pickle, statistics
import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F
import torch.utils.checkpoint

rnn = nn.utils.rnn
logger = logging.getLogger("measured")
x, v, s = torch.rand(64, 64, device=d), torch.rand(1000, device=d), torch.rand((), device=d)
i, idx = torch.randint(0, 10, (100,), device=d), torch.tensor(3, device=d)
m, m2 = v > 0.5, x > 0.5
h, hp = torch.rand(64, 64), torch.rand(64, 64).pin_memory()
hbig, hbigp = torch.rand(4096, 4096), torch.rand(4096, 4096).pin_memory()
spd = x @ x.T + 64 * torch.eye(64, device=d)
w = torch.rand(64, 64, device=d, requires_grad=True)
p = nn.Parameter(torch.rand(64, 64, device=d))
lin, ln, conv = nn.Linear(64, 64).to(d), nn.LayerNorm(64).to(d), nn.Conv2d(3, 8, 3).to(d)
emb, bn, drop = nn.Embedding(100, 64).to(d), nn.BatchNorm1d(64).to(d), nn.Dropout(0.1)
lstm = nn.LSTM(64, 64, batch_first=True).to(d)
mha = nn.MultiheadAttention(64, 4, batch_first=True).to(d)
enc = nn.TransformerEncoder(nn.TransformerEncoderLayer(64, 4, batch_first=True), 2).to(d)
img, seq = torch.rand(2, 3, 32, 32, device=d), torch.rand(4, 10, 64, device=d)
opt, sgd = torch.optim.AdamW(lin.parameters()), torch.optim.SGD(lin.parameters(), lr=0.1)
lbfgs, scaler = torch.optim.LBFGS(lin.parameters()), torch.amp.GradScaler("cuda")
tgt, ema = torch.randint(0, 64, (64,), device=d), torch.zeros((), device=d)
perm_cpu, lens_cpu = torch.randperm(64), torch.tensor([10, 9, 8, 7])
lens_gpu = lens_cpu.to(d)
"""

STEP = """
import torch

d = torch.device("{device}")
net = torch.nn.Linear(64, 64).to(d)
data = torch.rand(64, 64, device=d)
{setup}


def step():
    for _ in range(100):
        out = net(data).sum()
{body}


step()
"""

UNDECIDABLE = {
    # Depends on the size of what is copied.
    "hbig.to(d, non_blocking=True)",
    # Two names of one tensor are equal without a look at it.
    "torch.equal(v, v)",
    # Named after what was measured, not programs.
    "BatchNorm1d(momentum=None)(x)",
    "GradScaler.step(SGD)",
    "SummaryWriter.add_histogram(cuda)",
    "event.record(); event.synchronize()",
    "optim.LBFGS.step(closure)",
    "tqdm.set_description(f-string)",
}

SHAPE_DECIDES = "a wait for some shapes only"
IDENTICAL = "the same object is equal without a look at it"
NOTHING_LEFT = "there was nothing to wait for: what it asks for was done before the spin"
EXCEPTIONS = {
    "indexing": {"x.__getitem__(idx)": "nobody writes an index that way"},
    "numbers": {
        "x.sort(zero)": "an overload that takes `stable` hides the position of `dim`",
        "F.max_pool2d(img, n)": "a function with neither a schema nor annotations",
        "F.gumbel_softmax(x, tau=s)": "it divides by its number, tensor or not",
        "torch.linalg.lu(x[:32])": SHAPE_DECIDES,
        "torch.linalg.lu_factor_ex(x[:32])": SHAPE_DECIDES,
    },
    "python": {
        "operator.contains([s2, s], s)": "nobody writes `in` that way",
        'string.Template("$loss").substitute(loss=s)': "string templates are not followed",
        "if s in [s]: pass": IDENTICAL,
        "[s].index(s)": IDENTICAL,
        "filter(None, v[:3])": "nothing is filtered before somebody asks for it",
    },
    "sampled_functions": {
        **{
            f"torch._segment_reduce(a0, '{how}', axis=0, unsafe=False, initial=1, lengths=a1)": (
                "a private function"
            )
            for how in ("max", "mean", "min", "sum", "prod")
        },
        "torch.linalg.lu_factor_ex(a0, pivot=True)": SHAPE_DECIDES,
        "torch.linalg.lu_factor_ex(a0, pivot=False)": SHAPE_DECIDES,
        "torch.linalg.lu(a0, pivot=True)": SHAPE_DECIDES,
        "torch.linalg.lu(a0, pivot=False)": SHAPE_DECIDES,
        "torch.equal(a0, a1)": "tensors of different shapes are unequal without a look at them",
    },
    "training": {
        "torch.equal(v, v)": IDENTICAL,
        "scaler.get_scale()": "before its first use a scaler has its scale on the host",
        "torch.sparse_coo_tensor(torch.zeros(2, 1, dtype=torch.int64, device=d), "
        "torch.ones(1, device=d), (8, 8)).coalesce()": SHAPE_DECIDES,
        "sparse.coalesce()": "it was coalesced already",
        "stream.synchronize()": NOTHING_LEFT,
        "end.record() ;; end.synchronize()": NOTHING_LEFT,
    },
}

LISTS = sorted(path.stem for path in FOLDER.glob("*.json") if path.stem != "operations")


def first_measured() -> dict[Program, bool]:
    table = json.loads((FOLDER / "operations.json").read_text("utf-8"))
    return {Program(SETUP, "", text): waited for text, waited in table["operations"].items()}


def measured(name: str) -> dict[Program, bool]:
    """The programs of a list, and whether each waited."""
    table = json.loads((FOLDER / f"{name}.json").read_text("utf-8"))
    listed = FOLDER / f"{name}.txt"
    setups = {p.key: p.setup for p in read_programs(listed)} if listed.exists() else {}
    return {
        _program(setup or setups.get(key, ""), key): waited
        for setup, operations in table["rows"]
        for key, waited in operations.items()
    }


def _program(setup: str, key: str) -> Program:
    prepare, _, operation = key.rpartition(f" {THEN} ")
    return Program(setup, prepare, operation)


def findings_on(program: Program, device: str) -> list[Finding]:
    lines = [line for line in (program.prepare, program.operation) if line]
    body = "\n".join(f"        {line}" for line in lines)
    text = STEP.replace("{device}", device).replace("{setup}", program.setup)
    line = text[: text.index("{body}")].count("\n") + len(lines)
    text = text.replace("{body}", body)
    found = rooflint.check(rooflint.open_source("measured.py", text))
    return [f for f in found if f.span.line == line]


def misjudged(programs: dict[Program, bool]) -> set[str]:
    """The operations with a finding that did not wait, and those without one that did."""
    return {
        program.key
        for program, waited in programs.items()
        if waited
        != any(
            f.kind == "sync" or (f.kind == "copy" and f.severity == "warning")
            for f in findings_on(program, "cuda")
        )
    }


def warned_on_the_cpu(programs: dict[Program, bool]) -> set[str]:
    asks_for_the_gpu = ("cuda", "scaler")
    return {
        program.key
        for program in programs
        if not any(word in program.setup + program.key for word in asks_for_the_gpu)
        and any(f.severity == "warning" for f in findings_on(program, "cpu"))
    }


def test_an_operation_has_a_finding_if_and_only_if_it_waited() -> None:
    wrong = misjudged(first_measured())
    assert wrong == UNDECIDABLE
    assert len(wrong) < 0.02 * len(first_measured())


@pytest.mark.parametrize("name", LISTS)
def test_a_listed_operation_has_a_finding_if_and_only_if_it_waited(name: str) -> None:
    assert misjudged(measured(name)) == set(EXCEPTIONS.get(name, {}))


def test_of_all_listed_operations_less_than_one_in_a_hundred_is_misjudged() -> None:
    programs = {p: waited for name in LISTS for p, waited in measured(name).items()}
    keys = {key for table in EXCEPTIONS.values() for key in table}
    assert sum(p.key in keys for p in programs) < 0.01 * len(programs)


@pytest.mark.parametrize("name", ["", *LISTS])
def test_the_same_program_on_the_cpu_has_no_warning(name: str) -> None:
    assert warned_on_the_cpu(measured(name) if name else first_measured()) == set()
