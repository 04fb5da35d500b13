"""What is known of a value, a loop and a clock, asked through the waits they lead to."""

from __future__ import annotations

import textwrap

import pytest

import rooflint
from rooflint.flow import DeviceFlow, Stop
from rooflint.source import SourceFile

HEAD = """
import time
import torch
import torch.nn.functional as F
from torch import nn
from torch.utils.data import DataLoader, Dataset, TensorDataset
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 8, device=device)
"""


def stops_of(text: str) -> list[Stop]:
    """The waits of a program, but for its modules' way to the GPU."""
    flow = DeviceFlow.of(rooflint.open_source("flow.py", HEAD + text))
    return [s for s in flow.stops if s.wait.detail != "module"]


def in_a_step(expression: str, setup: str = "") -> list[Stop]:
    """The waits of an expression on every step of a training loop."""
    body = "\n".join(f"    {line}" for line in expression.splitlines())
    text = (
        f"{setup}\nfor step in range(100):\n    out = model(x)\n    out.mean().backward()\n"
        f"    optimizer.step()\n{body}\n"
    )
    return stops_of(text)


@pytest.mark.parametrize(
    "expression",
    [
        "out.detach().sum().item()",
        "(out * 2 + 1).view(-1)[0].item()",
        "out.max(1).values.tolist()",
        "out.max(1)[1].cpu()",
        "a, b = out.chunk(2)\nb.tolist()",
        "pair = {'loss': out}\npair['loss'].cpu()",
        "[t.item() for t in out.mean(0)]",
        "(lambda t: t.item())(out.mean())",
        "F.cross_entropy(out, out.argmax(1)).item()",
        "y = out if step else None\ny.cpu()",
        "if (m := out.mean()) is not None:\n    m.item()",
        "torch.zeros_like(out).cpu()",
        "next(model.parameters()).norm().item()",
        "torch.cat([out, out]).tolist()",
        "x.new_zeros(3).tolist()",
    ],
)
def test_a_value_is_followed_to_where_it_is_read(expression: str) -> None:
    stops = in_a_step(expression)
    assert [(s.heat, s.wait.sure) for s in stops] == [("every step", True)]


@pytest.mark.parametrize(
    "expression",
    [
        "out.shape[0]",
        "len(out)",
        "out.size(0) == 4",
        "torch.randn(4).sum().item()",
        "host = out.detach().to('cpu', non_blocking=True)",
        "torch.arange(4, device=out.device)",
        "isinstance(out, torch.Tensor)",
        "out is None",
        "float(step)",
        "F.one_hot(out.argmax(1), num_classes=2)",
        "out.detach()[0] = out.detach()[1]",
    ],
)
def test_what_the_host_knows_does_not_wait(expression: str) -> None:
    assert in_a_step(expression) == []


@pytest.mark.parametrize(
    "expression",
    [
        "batch = {'x': out}\n'labels' in batch",
        "for row in out:\n    'labels' in row",
        "if torch.is_complex(out) or torch.is_floating_point(out): pass",
        "if out.is_contiguous() and out.is_leaf: pass",
        "wanted = x.dtype\nout.to(wanted)",
        "torch.tensor([], device=device)",
        "torch.empty(0).to(device)",
        "parts = tuple([slice(None)] * 1 + [slice(0, 1)])\nout[parts]",
        "assert False\nout.sum().item()",
    ],
)
def test_what_only_looks_like_a_wait_is_none(expression: str) -> None:
    assert in_a_step(expression) == []


def test_what_is_asked_for_by_name_may_be_a_flag() -> None:
    setup = "def flag(batch):\n    if batch.get('verbose'): pass"
    stops = in_a_step("flag(x)\nflag({'y': out})\nkey() in x", "from lab import key\n" + setup)
    assert {s.wait.sure for s in stops} == {False}


@pytest.mark.parametrize(
    "expression",
    [
        "hits = (out > 0).nonzero(as_tuple=True)\nout.detach()[hits] = out.detach()[hits]",
        "rows = torch.where(out[:, 0] > 0)[0]\nx[rows] = x[rows] * 2",
    ],
)
def test_indices_that_are_on_the_gpu_are_not_copied_there(expression: str) -> None:
    assert [s.wait.operation for s in in_a_step(expression)] == ["nonzero"]


@pytest.mark.parametrize(
    "once",
    [
        "if 'mean' not in kept: kept['mean'] = torch.tensor(0.0, device=device)",
        "if len(kept) == 0: kept['mean'] = torch.zeros([]).to(device)",
        "if not kept: kept['mean'] = torch.tensor([1, 2], device=device)",
        "if holder.mask is None: holder.mask = torch.tensor([1, 2], device=device)",
        "if not hasattr(holder, 'bias'): holder.bias = torch.tensor([1], device=device)",
    ],
)
def test_what_is_made_when_it_is_missing_is_made_once(once: str) -> None:
    setup = """
class Holder(nn.Module):
    def __init__(self):
        super().__init__()
        self.mask = None
holder = Holder()
kept = {}
"""
    assert [s.heat for s in in_a_step(once, setup)] == ["sometimes"]


def test_parameters_and_buffers_live_where_the_input_does() -> None:
    text = """
class Norm(nn.Module):
    def __init__(self):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(3), requires_grad=False)
        self.shift = nn.Buffer(torch.zeros(3))
        self.register_buffer("mean", torch.zeros(3))
    def forward(self, value):
        self.mean.copy_(value.mean(0))
        return value * self.weight.to(value.device) + self.shift.to(value.device)
for step in range(9):
    Norm().to(device)(x).mean().backward()
"""
    assert stops_of(text) == []


def test_the_device_of_an_unknown_tensor_may_be_the_host() -> None:
    body = "def f(rows):\n    for row in rows:\n        y = {} * model(row)\n"
    copied = stops_of(body.format("torch.tensor([1, 2], device=row.device)"))
    assert [s.wait.sure for s in copied] == [False]


def test_a_choice_of_devices_is_the_gpu() -> None:
    setup = 'where = "cuda" if torch.cuda.device_count() > 1 else "cpu"'
    assert in_a_step("torch.ones(3, device=where).tolist()", setup)


@pytest.mark.parametrize(
    "where",
    ["f'cuda:{rank}'", "'cuda:%d' % rank", "'cuda:' + str(rank)", "'cuda:{}'.format(rank)", "rank"],
)
def test_a_device_is_the_gpu_whatever_its_number(where: str) -> None:
    setup = f"import os\nrank = int(os.environ['RANK'])\nwhere = torch.device({where})"
    assert [s.wait.sure for s in in_a_step("torch.ones(3, device=where).tolist()", setup)] == [True]


def test_a_device_that_is_not_known_is_only_likely() -> None:
    stops = in_a_step("torch.ones(3, device=somewhere).tolist()", "from lab import somewhere")
    assert [s.wait.sure for s in stops] == [False]


def test_a_value_moved_to_the_host_no_longer_waits() -> None:
    stops = in_a_step("host = out.detach().cpu()\nhost.sum().item()\nif host.any(): pass")
    assert [s.wait.operation for s in stops] == ["cpu"]


def test_a_helper_waits_for_its_caller() -> None:
    setup = "def shown(v):\n    return v.mean().item()\ndef outer(v):\n    return shown(v)"
    (stop,) = in_a_step("outer(out)", setup)
    assert stop.heat == "every step"
    assert [site.text for site in stop.calls] == ["outer(out)", "shown(v)"]


def test_a_helper_called_with_host_values_does_not_wait() -> None:
    setup = "def shown(v):\n    return v.mean().item()"
    assert in_a_step("shown(torch.ones(3))", setup) == []


def test_what_one_epoch_does_once_is_not_hot() -> None:
    text = """
for epoch in range(3):
    total = torch.zeros((), device=device)
    for step in range(100):
        loss = model(x).mean()
        loss.backward()
        optimizer.step()
        total += loss.detach()
    print(total.item())
"""
    assert [s.heat for s in stops_of(text)] == ["once"]


def test_a_loop_over_layers_is_part_of_the_step() -> None:
    text = """
layers = nn.ModuleList(nn.Linear(8, 8) for _ in range(3)).to(device)
for batch in [x, x]:
    h = batch
    for layer in layers:
        h = layer(h)
    h.sum().item()
"""
    assert [s.heat for s in stops_of(text) if s.wait.operation == "item"] == ["every step"]


def test_a_guard_makes_it_sometimes() -> None:
    (stop,) = in_a_step("if step % 50 == 0:\n    out.mean().item()")
    assert stop.heat == "sometimes"
    assert stop.guard is not None
    assert stop.guard.site.text == "step % 50 == 0"


def test_a_guard_of_two_steps_is_no_guard() -> None:
    (stop,) = in_a_step("if step % 2 == 0:\n    out.mean().item()")
    assert stop.heat == "every step"


def test_a_batch_of_a_pinned_loader_copies_without_waiting() -> None:
    text = """
data = TensorDataset(torch.randn(64, 8))
for (batch,) in DataLoader(data, batch_size=4, pin_memory={pin}):
    model(batch.to(device, non_blocking={blocking}))
"""
    hot = [
        [s for s in stops_of(text.format(pin=pin, blocking=b)) if s.heat == "every step"]
        for pin, b in ((True, True), (True, False), (False, False))
    ]
    assert [len(h) for h in hot] == [0, 1, 1]


def test_a_module_takes_its_buffers_along() -> None:
    setup = """
class Shift(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("offset", torch.zeros(3))
        self.plain = torch.zeros(3)
shift = Shift().to(device)
"""
    assert len(in_a_step("shift.offset.tolist()", setup)) == 1
    assert in_a_step("shift.plain.tolist()", setup) == []


def test_the_code_of_a_dataset_is_not_on_the_gpu() -> None:
    text = """
class Rows(Dataset):
    def __len__(self):
        return 9
    def __getitem__(self, i):
        row = torch.randn(8)
        return row[row > 0].sum().item()
for batch in DataLoader(Rows(), batch_size=4):
    model(x).mean().backward()
"""
    assert stops_of(text) == []


def test_the_rank_of_what_a_mask_reads_reaches_the_backward_pass() -> None:
    reads = "picked = model(x)[x[:, :2] > 0].sum()\npicked.backward()"
    assert "backward" in [s.wait.operation for s in in_a_step(reads)]
    plain = "picked = model(x)[:, 0].sum()\npicked.backward()"
    assert "backward" not in [s.wait.operation for s in in_a_step(plain)]


def faults_of(text: str) -> list[str]:
    return [t.fault for t in DeviceFlow.of(rooflint.open_source("t.py", HEAD + text)).timings]


def test_a_clock_around_launches_is_wrong_and_one_after_a_wait_is_not() -> None:
    wrong = "start = time.time()\ny = model(x)\nprint(time.time() - start)\n"
    right = "start = time.time()\ny = model(x).sum().item()\nprint(time.time() - start)\n"
    host = "start = time.time()\ny = sum(range(9))\nprint(time.time() - start)\n"
    assert [faults_of(t) for t in (wrong, right, host)] == [["stop"], [], []]


def test_a_clock_started_before_the_gpu_is_done_times_that_too() -> None:
    text = "y = model(x)\nstart = time.time()\nmodel(x)\ntorch.cuda.synchronize()\n"
    assert faults_of(text + "print(time.time() - start)\n") == ["start"]


@pytest.mark.parametrize(
    "strange",
    [
        "def f(): return f()\nf()",
        "class A:\n    def __getattr__(self, n):\n        return getattr(self, n)\nA().x",
        "x = []\nx.append(x)\nprint(x)\nf'{x}'",
        "d = {}\nd['d'] = d\nstr(d)",
        "def g():\n    yield from g()\nfor v in g(): pass",
        "a = (1,)\nfor i in range(9): a = (a, a)",
        "while True: x = x + 1",
        "class B(B): pass",
        "def f(g): return g(g)\nf(f)",
        "m = nn.Sequential()\nm.append(m)\nm(x).item()",
        "for i in range(9):\n  for j in range(9):\n    for k in range(9): x = x @ x",
    ],
)
def test_no_program_is_too_strange_to_be_followed(strange: str) -> None:
    rooflint.check(rooflint.open_source("strange.py", HEAD + strange + "\n"))


def test_a_loop_over_the_parameters_within_a_guard_is_hot_by_itself() -> None:
    loop = "for p in model.parameters():\n        if p.isnan().any(): break"
    (stop,) = in_a_step(f"if step % 50 == 0:\n    {loop}")
    assert stop.heat == "every step"


@pytest.mark.parametrize(
    ("target", "moved"),
    [
        ("batch", "batch = batch.to(device)"),
        ("a, b", "a = a.to(device)"),
        ("batch", "a = batch['a'].cuda()"),
        ("batch", "batch = {k: v.to(device) for k, v in batch.items()}"),
        ("i, (a, b)", "a = a.float().to(device)"),
    ],
)
def test_the_batches_of_an_unknown_loader_come_from_the_host(target: str, moved: str) -> None:
    text = f"""
from lab import make_loader
for {target} in {"enumerate(make_loader())" if target.startswith("i,") else "make_loader()"}:
    {moved}
    model(x).mean().backward()
"""
    assert [(s.heat, s.wait.sure) for s in stops_of(text)] == [("every step", True)]
    assert stops_of(text.replace("(device)", "(device, non_blocking=True)").replace(
        "cuda()", "cuda(non_blocking=True)")) == []  # fmt: skip


@pytest.mark.parametrize(
    "loop",
    [
        "for batch in loader:",
        "for i, batch in enumerate(loader):",
        "for i, batch in enumerate(tqdm(loader)):",
        "for batch in islice(loader, 9):",
        "for batch, other in zip(loader, range(9)):",
    ],
)
@pytest.mark.parametrize(("config", "waits"), [("", 1), ("non_blocking=True", 0)])
def test_a_prepared_loader_copies_each_batch(loop: str, config: str, waits: int) -> None:
    text = f"""
from itertools import islice
from accelerate import Accelerator, DataLoaderConfiguration
from tqdm import tqdm
accelerator = Accelerator(dataloader_config=DataLoaderConfiguration({config}))
rows = TensorDataset(torch.randn(64, 8))
net, loader = accelerator.prepare(nn.Linear(8, 2), DataLoader(rows))
{loop}
    accelerator.backward(net(x).mean())
"""
    assert [s.wait.detail for s in stops_of(text)] == ["prepared"] * waits


@pytest.mark.parametrize("default", ["cpu", "cuda", "auto"])
def test_the_command_line_does_not_fix_the_device(default: str) -> None:
    setup = f"""
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--device", default="{default}")
args = parser.parse_args()
"""
    stops = in_a_step("torch.ones(3, device=args.device).tolist()", setup)
    assert [s.wait.sure for s in stops] == [True]


def test_what_follows_the_inner_loops_of_an_iteration_is_hot() -> None:
    text = """
for iteration in range(1, 1000):
    for step in range(64):
        old = model(x).mean()
    for epoch in range(4):
        model(x).mean().backward()
        optimizer.step()
    print(old.item())
"""
    assert [s.heat for s in stops_of(text)] == ["every step"]


@pytest.mark.parametrize(
    ("base", "method", "statement"),
    [
        ("pl.LightningModule", "training_step(self, batch, i)", "self.net(batch[0]).cpu().numpy()"),
        (
            "pl.LightningModule",
            "training_step(self, batch, i)",
            "if torch.isnan(batch[0].sum()): 0",
        ),
        ("pl.LightningModule", "on_train_batch_end(self, out, batch, i)", "out['loss'].item()"),
        ("Trainer", "compute_loss(self, model, inputs)", "model(**inputs).loss.item()"),
        ("Trainer", "prediction_step(self, model, inputs)", "model(**inputs).logits.cpu()"),
        (
            "TrainerCallback",
            "on_step_end(self, args, state, control, model=None, **kw)",
            "[torch.isnan(p.grad).any().item() for p in model.parameters()]",
        ),
    ],
)
def test_a_framework_hands_over_what_is_on_the_gpu(base: str, method: str, statement: str) -> None:
    text = f"""
import pytorch_lightning as pl
from transformers import Trainer, TrainerCallback
class Own({base}):
    def {method}:
        {statement}
"""
    assert [(s.heat, s.wait.sure) for s in stops_of(text)] == [("every step", True)]


@pytest.mark.parametrize(
    "statement",
    [
        "if 'labels' in batch: pass",
        "if len(batch) > 2 and self.training: pass",
        "if self.hparams.verbose: pass",
        "if i % 10 == 0 and batch is not None: pass",
    ],
)
def test_what_a_framework_knows_on_the_host_does_not_wait(statement: str) -> None:
    text = f"""
import pytorch_lightning as pl
class Own(pl.LightningModule):
    def training_step(self, batch, i):
        {statement}
"""
    assert stops_of(text) == []


def test_a_function_of_another_file_may_have_waited_for_what_is_timed() -> None:
    timed = "from lab import run\nstart = time.time()\n{}\nprint(time.time() - start)\n"
    sure = [
        [
            t.sure
            for t in DeviceFlow.of(rooflint.open_source("t.py", HEAD + timed.format(body))).timings
        ]
        for body in ("model(x)", "run(model(x))", "def f():\n    run(model(x))\nf()\nf()")
    ]
    assert sure == [[True], [False], [False]]


def test_the_forward_of_a_base_is_not_that_of_the_class() -> None:
    text = """
class Positions(nn.Embedding):
    def forward(self, shape):
        rows, length = shape[:2]
        return super().forward(torch.arange(0, length, device=self.weight.device))
positions = Positions(8, 2).to(device)
for step in range(9):
    positions(x.shape).mean().backward()
"""
    assert stops_of(text) == []


def test_a_loop_over_a_state_is_set_up() -> None:
    text = "for name, value in full_sd.items():\n    (model(x) + value).cpu()\n"
    assert [s.heat for s in stops_of(text)] == ["once"]


def test_what_extends_a_foreign_class_and_has_a_forward_is_a_module() -> None:
    text = """
from lab import Encoder
class Own(Encoder):
    def __init__(self):
        super().__init__()
        self.out = nn.Linear(8, 8)
    def forward(self, hidden):
        return hidden + self.out(hidden).to(hidden.device)
"""
    assert [s.wait.sure for s in stops_of(text) if s.heat == "every step"] == []


def test_what_each_pass_over_the_data_does_once_is_not_hot() -> None:
    text = """
loader = DataLoader(TensorDataset(torch.randn(64, 8)))
def evaluate():
    seen = model(x)
    for (batch,) in loader:
        seen = seen + model(batch.to(device, non_blocking=True))
    return seen.cpu()
for size in sizes:
    evaluate()
"""
    assert [s.heat for s in stops_of(text) if s.wait.operation == "cpu"] == ["once"]


def test_who_looks_at_a_function_does_not_call_it() -> None:
    setup = "import inspect\ndef read():\n    return x.sum().item()"
    assert in_a_step("inspect.signature(read)", setup) == []
    assert [s.wait.operation for s in in_a_step("unheard_of(read)", setup)] == ["item"]


@pytest.mark.parametrize(
    ("text", "how"),
    [
        ("if step % 50 == 0:\n    out.mean().item()", "on one step in 50"),
        ("if step % 50 != 0:\n    continue\nout.mean().item()", "on one step in 50"),
        ("if not step % 50:\n    out.mean().item()", "on one step in 50"),
        ("if step % 50:\n    pass\nelse:\n    out.mean().item()", "on one step in 50"),
        ("if rank == 0 and step % 50 == 0:\n    out.mean().item()", "on every step of rank 0"),
        ("if torch.distributed.get_rank() == 0:\n    out.mean().item()", "on every step of rank 0"),
        ("now = step % 50 == 0\nif now:\n    out.mean().item()", "on one step in 50"),
        ("if step in (1, 5):\n    out.mean().item()", ""),
        (
            "def due():\n    return step % 50 == 0\nif due():\n    out.mean().item()",
            "on one step in 50",
        ),
        (
            "def due(n, m):\n    return n % m == 0\nif due(step, 9):\n    out.mean().item()",
            "on one step in 9",
        ),
        ("step % 50 == 0 and out.mean().item()", "on one step in 50"),
        ("a = step % 50 == 0 and step and out.mean().item() > 3", "on one step in 50"),
        ("assert step % 50 or out.mean().item() > 0", "on one step in 50"),
        ("a = out.mean().item() if step % 50 == 0 else None", "on one step in 50"),
        ("a = None if step % 50 else out.mean().item()", "on one step in 50"),
        ("a = [out.mean().item() for _ in range(1) if step % 50 == 0]", "on one step in 50"),
        ("if (step & 63) == 0:\n    out.mean().item()", "on one step in 64"),
        ("if not step & 63:\n    out.mean().item()", "on one step in 64"),
        ("if step < 10:\n    out.mean().item()", "on the first 10 steps"),
        ("if step <= 10:\n    out.mean().item()", "on the first 11 steps"),
        ("if step >= 10:\n    continue\nout.mean().item()", "on the first 10 steps"),
        (
            "turn, left = divmod(step, 50)\nif left == 49:\n    out.mean().item()",
            "on one step in 50",
        ),
        ("left = step % 50\nif not left:\n    out.mean().item()", "on one step in 50"),
        ("skip = step % 50 != 0\nif not skip:\n    out.mean().item()", "on one step in 50"),
        ("now = step % 50 == 0 and step\nif now:\n    out.mean().item()", "on one step in 50"),
        ("match step % 50:\n    case 0:\n        out.mean().item()", "on one step in 50"),
        ("match step % 50:\n    case 0 | 1:\n        out.mean().item()", ""),
        ("match step % 50 == 0:\n    case True:\n        out.mean().item()", "on one step in 50"),
        (
            "match out:\n    case _ if step % 50 == 0:\n        out.mean().item()",
            "on one step in 50",
        ),
    ],
)
def test_a_guard_says_how_often_it_lets_through(text: str, how: str) -> None:
    (stop,) = in_a_step(text)
    assert stop.heat == "sometimes"
    assert stop.guard is not None
    assert stop.guard.how == how


@pytest.mark.parametrize(
    "text",
    [
        "step and out.mean().item()",
        "a = step % 3 == 0 and out.mean().item()",
        "a = step % 50 == 0 or out.mean().item()",
        "a = None if step % 50 == 0 else out.mean().item()",
        "a = [t.item() for i, t in enumerate(out.mean(1)) if i % 50 == 0]",
        "if (step & 1) == 0:\n    out.mean().item()",
        "if step < 50:\n    out.mean().item()",
        "if step >= 10:\n    out.mean().item()",
        "left = step % 50\nif left:\n    out.mean().item()",
        "match step % 50:\n    case 0:\n        pass\n    case _:\n        out.mean().item()",
    ],
)
def test_what_lets_most_steps_through_is_no_guard(text: str) -> None:
    assert [s.heat for s in in_a_step(text)] == ["every step"]


DUE = """
class Log:
    def __init__(self, every):
        self.every, self.n = every, 0
    def due(self):
        self.n += 1
        if self.n < 3:
            return False
        return self.n % self.every == 0
    @property
    def is_due(self):
        return self.n % self.every == 0
log = Log({every})
"""


@pytest.mark.parametrize("asked", ["log.due()", "log.is_due"])
@pytest.mark.parametrize(("every", "heat"), [(50, "sometimes"), (2, "every step")])
def test_a_method_says_how_often_it_lets_through(asked: str, every: int, heat: str) -> None:
    stops = in_a_step(f"if {asked}:\n    out.mean().item()", DUE.format(every=every))
    assert [s.heat for s in stops] == [heat]


FLAGS = """
import argparse
parser = argparse.ArgumentParser()
parser.add_argument("--look", {given})
args = parser.parse_args()
"""


@pytest.mark.parametrize(
    ("given", "asked", "heat"),
    [
        ("action='store_true'", "args.look", "sometimes"),
        ("type=bool, default=False", "args.look", "sometimes"),
        ("action=argparse.BooleanOptionalAction, default=False", "args.look", "sometimes"),
        ("action='store_false'", "not args.look", "sometimes"),
        ("action='store_false'", "args.look", "every step"),
        ("action='store_true'", "not args.look", "every step"),
        ("action='store_true', default=True", "args.look", "every step"),
        ("action='store_true', dest='use_cuda'", "args.use_cuda", "every step"),
        ("type=int, default=10", "args.look", "every step"),
    ],
)
def test_a_flag_that_is_off_by_default_is_a_guard(given: str, asked: str, heat: str) -> None:
    stops = in_a_step(f"if {asked}:\n    out.mean().item()", FLAGS.format(given=given))
    assert [s.heat for s in stops] == [heat]
    stops = in_a_step(f"{asked} and out.mean().item()", FLAGS.format(given=given))
    assert [s.heat for s in stops] == [heat]


@pytest.mark.parametrize(
    ("text", "heat"),
    [
        ("if len(rows) >= 20:\n    out.mean().item()\n    rows.clear()", "sometimes"),
        ("if len(rows) == 20:\n    out.mean().item()\n    rows = []", "sometimes"),
        ("if len(rows) >= 20:\n    out.mean().item()", "every step"),
        ("if len(rows) >= 2:\n    out.mean().item()\n    rows.clear()", "every step"),
        ("count += 1\nif count > 20:\n    out.mean().item()\n    count = 0", "sometimes"),
        ("count += 1\nif count > 20:\n    out.mean().item()", "every step"),
        ("if clock() - last > 30:\n    out.mean().item()\n    last = clock()", "sometimes"),
        ("if clock() - last > 0.1:\n    out.mean().item()\n    last = clock()", "every step"),
        ("if clock() - last > 30:\n    out.mean().item()", "every step"),
    ],
)
def test_what_has_grown_and_begins_anew_is_a_guard(text: str, heat: str) -> None:
    setup = "from time import monotonic as clock\nrows, count, last = [], 0, clock()"
    stops = in_a_step(f"rows.append(step)\n{text}", setup)
    assert [s.heat for s in stops if s.wait.operation == "item"] == [heat]


@pytest.mark.parametrize(
    ("test", "count"),
    [
        ("'cuda' not in 'cuda:0'", 0),
        ("kind != 'cuda'", 0),
        ("not str(device).startswith('cuda')", 0),
        ("'cuda:0'.split(':')[0] != 'cuda'", 0),
        ("not out.is_cuda", 0),
        ("out.is_cpu", 0),
        ("'cuda' in kind", 1),
        ("out.is_cuda", 1),
        ("unheard_of('cuda')", 1),
    ],
)
def test_a_branch_that_no_tensor_of_the_gpu_takes_is_not_followed(test: str, count: int) -> None:
    setup = "kind = 'cuda' if 'cuda' in str(device) else 'cpu'"
    stops = in_a_step(f"if {test}:\n    out.mean().item()", setup)
    assert len([s for s in stops if s.wait.operation == "item"]) == count


@pytest.mark.parametrize(
    ("text", "heats"),
    [
        ("if step == 0:\n    out.mean().item()", ["once"]),
        ("if step != len(rows) - 1:\n    continue\nout.mean().item()", ["once"]),
        ("if rows and step == 5:\n    out.mean().item()", ["once"]),
        ("if len(rows) > 9:\n    out.mean().item()\n    break", ["once"]),
        ("if len(rows) > 9:\n    out.mean().item()\n    raise SystemExit", ["once"]),
        ("if len(rows) > 9:\n    raise ValueError(f'{out}')", ["once"]),
        ("assert len(rows) > 9, f'{out}'", ["once"]),
        ("try:\n    unheard_of()\nexcept OSError:\n    out.mean().item()\n    raise", ["once"]),
        ("for k in range(9):\n    if k < 2:\n        print(out)", ["every step"]),
        ("for k in range(9):\n    if k % 4 == 0:\n        print(out)", ["every step"]),
        ("for k in range(3):\n    if k == 1:\n        out.mean().item()", ["every step"]),
        (
            "for k in range(3):\n    if rows[k]:\n        out.tolist()\n        break",
            ["every step"],
        ),
        ("if rows[0] == step:\n    out.mean().item()", ["sometimes"]),
        ("for row in rows:\n    out.sum()\n    if row == 0:\n        out.tolist()", ["sometimes"]),
        (
            "n = 0\nfor row in rows:\n    n += 1\n    if n == 1:\n        out.tolist()",
            ["every step"],
        ),
    ],
)
def test_what_runs_on_one_turn_of_a_loop_runs_as_often_as_the_loop(
    text: str, heats: list[str]
) -> None:
    assert [s.heat for s in in_a_step(text, "rows = unheard_of()")] == heats


@pytest.mark.parametrize(
    ("loop", "heat"),
    [
        ("for _ in range(3):\n    model(torch.randn(4, 8).to(device))", "once"),
        ("n = 10\nfor _ in range(n):\n    model(torch.randn(4, 8).to(device))", "once"),
        (
            "for _ in range(3):\n    with torch.no_grad():\n"
            "        model(torch.randn(4, 8).to(device))\n        torch.cuda.empty_cache()",
            "once",
        ),
        ("for _ in range(30):\n    model(torch.randn(4, 8).to(device))", "every step"),
        ("for _ in range(3):\n    y = model(torch.randn(4, 8).to(device))", "every step"),
        ("for _ in range(len(x)):\n    model(torch.randn(4, 8).to(device))", "every step"),
    ],
)
def test_a_few_turns_that_want_nothing_of_a_model_warm_it_up(loop: str, heat: str) -> None:
    assert [s.heat for s in stops_of(loop) if s.wait.operation == "copy"] == [heat]


@pytest.mark.parametrize(
    ("caught", "how"),
    [
        ("except OSError:", "on the steps that raise `OSError`"),
        ("except (OSError, KeyError):", "on the steps that raise `OSError` or `KeyError`"),
        ("except:", "on the steps that raise an exception"),
    ],
)
def test_what_is_done_about_an_exception_happens_where_it_is_raised(caught: str, how: str) -> None:
    (stop,) = in_a_step(f"try:\n    unheard_of()\n{caught}\n    out.mean().item()")
    assert stop.guard is not None
    assert stop.guard.how == how


def test_what_moves_itself_is_moved_once() -> None:
    text = """
scale = torch.ones(8)
for step in range(9):
    scale = scale.to(device)
    (model(x) * scale).mean().backward()
"""
    assert [s.heat for s in stops_of(text)] == ["once"]
    made_anew = text.replace("    scale = s", "    scale = torch.ones(8)\n    scale = s")
    assert [s.heat for s in stops_of(made_anew)] == ["every step"]


def test_an_attribute_that_only_a_move_writes_is_moved_once() -> None:
    text = """
class Turned(nn.Module):
    def __init__(self):
        super().__init__()
        self.angles = torch.ones(8)
    def forward(self, x):
        self.angles = self.angles.to(x.device)
        return x * self.angles
turned = Turned()
for step in range(9):
    turned(model(x)).mean().backward()
"""
    assert [s.heat for s in stops_of(text)] == ["once"]
    reset = text.replace(
        "turned = Turned", "    def reset(self):\n        self.angles = 1\nturned = Turned"
    )
    assert [s.heat for s in stops_of(reset)] == ["every step"]


@pytest.mark.parametrize(
    ("how", "asked", "heat"),
    [
        ("lru_cache", "made(4)", "sometimes"),
        ("lru_cache(maxsize=None)", "made(4)", "sometimes"),
        ("cache", "made(out.shape[0], out.device)", "sometimes"),
        ("cache", "made()", "once"),
        ("lru_cache", "made(step)", "every step"),
        ("lru_cache(maxsize=None)", "made(step + 1)", "every step"),
        ("cache", "made(out)", "every step"),
        ("wraps(print)", "made(4)", "every step"),
    ],
)
def test_what_a_function_keeps_is_made_once_for_each_argument(
    how: str, asked: str, heat: str
) -> None:
    made = "def made(*given):\n    return torch.ones(8).to(device)"
    stops = in_a_step(f"{asked}.sum()", f"import functools\n@functools.{how}\n{made}")
    assert [s.heat for s in stops] == [heat]
    words = [s.guard.how for s in stops if s.guard is not None]
    assert words == ["once for each different argument"] * (heat == "sometimes")


@pytest.mark.parametrize(
    ("how", "asked", "heat"),
    [
        ("cached_property", "table.row", "once"),
        ("cached_property", "Table().row", "every step"),
        ("cache", "table.row()", "once"),
        ("cache", "Table().row()", "every step"),
    ],
)
def test_what_an_object_keeps_is_made_once_for_each_object(how: str, asked: str, heat: str) -> None:
    setup = f"""
import functools
class Table:
    @functools.{how}
    def row(self):
        return torch.ones(8).to(device)
table = Table()
"""
    assert [s.heat for s in in_a_step(f"{asked}.sum()", setup)] == [heat]


def test_what_is_looked_up_and_kept_is_made_once() -> None:
    setup = """
made = {}
def constant(value):
    kept = made.get(value)
    if kept is None:
        kept = torch.tensor(value, device=device)
        made[value] = kept
    return kept
"""
    assert [s.heat for s in in_a_step("model(x) * constant(2.0)", setup)] == ["sometimes"]


def test_what_only_a_script_compiler_runs_is_not_followed() -> None:
    body = "if torch.jit.is_scripting():\n        print(x.mean())\n    model(x)"
    assert in_a_step(body) == []


def test_a_loop_over_settings_that_are_written_out_is_no_step() -> None:
    text = "for kind in [('a', 1), ('b', 2)]:\n    model(x).mean().backward()\n    x.cpu()\n"
    assert [s.heat for s in stops_of(text)] == ["once"]


def test_a_function_that_trains_once_is_a_step_whoever_calls_it() -> None:
    agent = """
        import torch
        class Agent:
            def __init__(self):
                self.net = torch.nn.Linear(4, 2).cuda()
                self.optimizer = torch.optim.SGD(self.net.parameters(), lr=0.1)
            def select_action(self, state):
                return self.net(torch.ones(4, device="cuda")).argmax().item()
            def learn(self, batch):
                loss = self.net(torch.ones(4, device="cuda")).mean()
                self.optimizer.zero_grad()
                loss.backward()
                self.optimizer.step()
                return loss.item()
        """
    file = SourceFile.parse("agent.py", textwrap.dedent(agent))
    found = {(f.span.line, f.severity) for f in rooflint.check(file)}
    assert found == {(8, "warning"), (14, "warning")}


def test_a_transform_of_images_of_pil_is_no_step() -> None:
    text = """
class Blend(nn.Module):
    def forward(self, image: torch.Tensor):
        '''image (PIL Image or Tensor): what to blend.'''
        return image * torch.tensor([0.5, 0.5], device=image.device)
"""
    assert [s.heat for s in stops_of(text)] == ["once"]
    assert [s.heat for s in stops_of(text.replace("PIL Image or ", ""))] == ["every step"]


def test_what_a_loop_generates_is_read_on_every_step() -> None:
    setup = """
def generate(start):
    for _ in range(100):
        start = torch.cat((start, model(start)[:, -1:]), dim=1)
    return start
"""
    text = f"{setup}for k in range(10):\n    made = generate(x)\n    print(made[0].tolist())\n"
    assert [s.heat for s in stops_of(text) if s.wait.operation == "tolist"] == ["every step"]
    once_a_pass = text.replace("for k in", "for epoch in")
    assert [s.heat for s in stops_of(once_a_pass) if s.wait.operation == "tolist"] == ["once"]


def test_new_with_sizes_copies_nothing() -> None:
    assert in_a_step("x.new(len(x), hidden)", "from settings import hidden") == []


def test_a_module_that_nobody_moves_leaves_what_it_makes_on_the_host() -> None:
    text = """
class Graph(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(8, 8)
    def forward(self, graph):
        first = graph.data["x"].float()
        return self.layer(first + torch.zeros(8, device=first.device))
graph = Graph()
for step in range(100):
    graph(unheard_of()).mean().item()
"""
    assert [s.wait.sure for s in stops_of(text)] == [False]
    moved = text.replace("graph = Graph()", "graph = Graph().cuda()")
    assert True in [s.wait.sure for s in stops_of(moved)]


def test_a_loop_over_the_parts_of_a_batch_is_no_pass_over_data() -> None:
    text = """
from torch_geometric.loader import DataLoader
from lab import Net, parts, shapes
net = Net().to(device)
loader = DataLoader(shapes)
def test(loader):
    for data in loader:
        data = data.to(device)
        outs = net(data)
        for out, kind in zip(outs.split(3), data.kind.tolist()):
            out[:, torch.tensor(parts[kind], device=device)]
for epoch in range(3):
    test(loader)
"""
    found = stops_of(text)
    assert {s.heat for s in found if s.wait.operation == "tolist"} == {"every step"}


@pytest.mark.parametrize(
    "loop",
    [
        "for size in args.sizes:\n    {}",
        "for box_type in types:\n    {}",
        "while size:\n    try:\n        {}\n        break\n    except Full:\n        size -= 1",
        "for attempt in range(3):\n    {}\n    break",
    ],
)
def test_a_loop_that_tries_or_chooses_is_no_step(loop: str) -> None:
    setup = "from lab import Full, args, size, types\n"
    text = setup + loop.format("x.sum().item()")
    assert [s.heat for s in stops_of(text)] == ["once"]
    inside = "\n".join(f"    {line}" for line in loop.format("x.sum().item()").splitlines())
    text = f"{setup}for step in range(9):\n    model(x)\n{inside}\n"
    assert {s.heat for s in stops_of(text)} == {"every step"}


@pytest.mark.parametrize(
    "read",
    [
        "[p.item() for p in net.scales.values()]",
        "{name: p.item() for name, p in net.scales.items()}",
        "net.scales['seg'].item()",
        "[net.scales[name].item() for name in net.scales]",
        "net.gates[0].item()",
        "[p.item() for p in net.gates]",
    ],
)
def test_parameters_in_a_container_move_with_their_module(read: str) -> None:
    text = """
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.scales = nn.ParameterDict({t: nn.Parameter(torch.zeros(())) for t in ("seg", "box")})
        self.gates = nn.ParameterList([nn.Parameter(torch.zeros(())) for _ in range(3)])
net = Net()
"""
    assert in_a_step(read, text) == []
    moved = in_a_step(read, text + "net.to(device)\n")
    assert [s.wait.operation for s in moved] == ["item"]


def test_a_dict_of_modules_yields_its_names() -> None:
    setup = "heads = nn.ModuleDict({'seg': nn.Linear(2, 2)}).to(device)\n"
    assert in_a_step("[heads[name](out).sum().item() for name in heads]", setup)
    assert in_a_step("[len(name) for name in heads]\nfloat(max(heads) == 'seg')", setup) == []


@pytest.mark.parametrize(
    "compares",
    [
        "rows.sort()",
        "sorted(rows)",
        "max(rows)",
        "heapq.heappush(rows, Row(out.mean()))",
        "heapq.nlargest(2, rows)",
    ],
)
def test_what_puts_objects_in_order_asks_their_class(compares: str) -> None:
    setup = """
import heapq
class Row:
    def __init__(self, score):
        self.score = score
    def __lt__(self, other):
        return {}
"""
    expression = f"rows = [Row(s) for s in out.mean(1)]\n{compares}"
    asked = in_a_step(expression, setup.format("bool(self.score < other.score)"))
    assert {s.heat for s in asked} == {"every step"}
    assert {s.wait.site.node.lineno for s in asked} == {HEAD.count("\n") + 7}
    left_to_python = in_a_step(expression, setup.format("self.score < other.score"))
    assert {s.wait.operation for s in left_to_python} == {"iterate"}
    assert in_a_step(expression, setup.format("id(self) < id(other)")) == []


def test_a_generator_runs_what_is_outside_of_its_loops_once() -> None:
    text = """
def batches(x):
    first = model(x).sum().item()
    for i in range(9):
        size = model(x).mean().tolist()
        yield size
    model(x).max().cpu()
for size in batches(x):
    model(x)
model(x)
for step in range(9):
    model(x)
    list(batches(x))
"""
    once, again = text.rsplit("model(x)\nfor step", 1)[0], text
    assert {s.wait.operation: s.heat for s in stops_of(once)} == {
        "item": "once",
        "tolist": "every step",
        "cpu": "once",
    }
    assert {s.heat for s in stops_of(again)} == {"every step"}


def test_a_loop_over_what_the_step_around_it_renews_is_part_of_that_step() -> None:
    text = """
beams = [x]
for _ in range(9):
    grown = []
    for beam in beams:
        grown.append(model(beam))
    {}
    grown[0].sum().item()
"""
    assert [s.heat for s in stops_of(text.format("beams = grown[:3]"))] == ["every step"]
    assert [s.heat for s in stops_of(text.format("pass"))] != ["every step"]


def test_the_parts_of_what_may_be_missing_are_no_text() -> None:
    rotary = """
class Rotary(nn.Module):
    def forward(self, x: torch.Tensor, angles: tuple[torch.Tensor, torch.Tensor] | None = None):
        cos, sin = angles
        return x * cos + angles[1] * x.flip(-1) * sin
"""
    assert stops_of(rotary) == []


def test_what_may_be_left_out_may_be_given_as_well() -> None:
    head = """
class Head(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor | None = None, labels=None, scale=None):
        if mask is None:
            mask = x > 0
        elif mask.all():
            x = x[mask]
        if scale:
            x = x * scale
        loss = None
        if labels is not None:
            loss = (x - labels).sum()
            print(loss.item())
        return x, loss
"""
    found = [s.wait.site.text for s in stops_of(head)]
    assert found == ["mask.all()", "x[mask]", "loss.item()"]


def test_who_takes_several_things_apart_is_given_no_tensor_alone() -> None:
    text = """
def latents(given=None):
    if given is not None:
        return given.cuda()
    frames = torch.zeros(4, 8, device="cuda")
    return frames, frames.shape[0]
for step in range(100):
    frames, count = latents(torch.zeros(4) if step % 2 else None)
    frames[:count].sum()
"""
    assert [s.wait.site.text for s in stops_of(text)] == ["given.cuda()"]


def test_a_mask_waits_whatever_it_selects_from() -> None:
    top = """
class Top(nn.Module):
    def __init__(self, inner):
        super().__init__()
        self.inner = inner
    def forward(self, ids: torch.Tensor, output_hidden, use_cache, layer_type):
        states = self.inner(ids, getattr(self, f"{layer_type}_scale"))[0]
        if output_hidden or use_cache:
            ids = ids + 1
        return states[ids.eq(2), :], states[:, -1], states[0]
"""
    assert [s.wait.site.text for s in stops_of(top)] == ["states[ids.eq(2), :]"]


def test_the_limits_of_a_type_are_numbers() -> None:
    text = """
rows = torch.zeros(4, dtype=torch.long, device="cuda")
for step in range(100):
    scores = torch.zeros(4, 4, device="cuda")
    scores[rows, rows] = torch.finfo(scores.dtype).min
    scores[:, 0] = torch.finfo(scores.dtype).min
    scores.masked_fill_(scores > 0, -math.inf)
"""
    assert [s.wait.site.text for s in stops_of("import math" + text)] == ["scores[rows, rows]"]
