"""Files are judged by what they import and by who uses them."""

from __future__ import annotations

import ast
import gc
import random
import textwrap
from collections.abc import Mapping
from pathlib import Path
from threading import Event

import pytest

import rooflint
from rooflint.checking import check_files
from rooflint.config import Config
from rooflint.files import python_files
from rooflint.flow import again
from rooflint.flow.follow import Following
from rooflint.flow.machine import Machine
from rooflint.flow.program import Program
from rooflint.flow.values import Function, Site
from rooflint.plain import replace
from rooflint.rules.edits import scope_of
from rooflint.source import SourceFile


def warnings(folder: Path, files: Mapping[str, str]) -> list[str]:
    """`file:line rule` of every Warning in a project of these files."""
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text))
    paths = [str(folder / name) for name in files]
    project = rooflint.open_project(lambda: paths, lambda path: _text(path), [str(folder)])
    found: list[str] = []
    for path in project.in_order():
        file = project.file(path)
        assert file is not None
        for finding in rooflint.check(file, project=project):
            if finding.severity in ("warning", "error"):
                name = Path(finding.span.path).relative_to(folder).as_posix()
                found.append(f"{name}:{finding.span.line} {finding.rule}")
    return sorted(found)


def _text(path: str) -> str | None:
    return Path(path).read_text() if Path(path).is_file() else None


TRAIN = """\
import torch
from torch import nn
from helpers import accuracy

model = nn.Linear(8, 2).cuda()
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
x = torch.randn(4, 8, device="cuda")
y = torch.zeros(4, dtype=torch.long, device="cuda")
for step in range(100):
    out = model(x)
    loss = nn.functional.cross_entropy(out, y)
    loss.backward()
    optimizer.step()
    accuracy(out, y)
"""


def test_a_helper_of_another_file_waits_where_it_is_called_with_gpu_tensors(tmp_path: Path) -> None:
    helpers = """\
        def accuracy(out, y):
            hits = (out.argmax(1) == y).sum()
            return hits.item()
        """
    assert warnings(tmp_path, {"train.py": TRAIN, "helpers.py": helpers}) == [
        "helpers.py:3 item-in-loop"
    ]


def test_the_same_helper_is_silent_where_tensors_live_on_the_cpu(tmp_path: Path) -> None:
    helpers = """\
        def accuracy(out, y):
            hits = (out.argmax(1) == y).sum()
            return hits.item()
        """
    on_cpu = TRAIN.replace(".cuda()", "").replace(', device="cuda"', "")
    assert warnings(tmp_path, {"train.py": on_cpu, "helpers.py": helpers}) == []


def test_what_another_file_returns_is_known(tmp_path: Path) -> None:
    helpers = """\
        def accuracy(out, y):
            return (out.argmax(1) == y).float().mean()
        """
    train = TRAIN.replace("    accuracy(out, y)", "    if accuracy(out, y) > 0.9:\n        break")
    assert warnings(tmp_path, {"train.py": train, "helpers.py": helpers}) == [
        "train.py:14 tensor-in-condition"
    ]


@pytest.mark.parametrize(
    ("line", "files"),
    [
        ("from helpers import accuracy", ["helpers.py"]),
        ("import helpers\naccuracy = helpers.accuracy", ["helpers.py"]),
        ("from lib.helpers import accuracy", ["lib/helpers.py", "lib/__init__.py"]),
        ("from lib import helpers as h; accuracy = h.accuracy", ["lib/helpers.py"]),
        ("from lib import accuracy", ["lib/helpers.py", "lib/__init__.py"]),
        ("from lib.helpers import *", ["lib/helpers.py"]),
        ("import lib.helpers\naccuracy = lib.helpers.accuracy", ["lib/helpers.py"]),
        ("import a.b.helpers\naccuracy = a.b.helpers.accuracy", ["a/b/helpers.py"]),
        ("from lib.helpers import accuracy", ["src/lib/helpers.py", "src/lib/__init__.py"]),
        (
            "try:\n    from lib.helpers import accuracy\nexcept ImportError:\n    accuracy = None",
            ["lib/helpers.py"],
        ),
    ],
)
def test_imports_are_found_as_python_finds_them(
    tmp_path: Path, line: str, files: list[str]
) -> None:
    texts = dict.fromkeys(files, "")
    texts[files[0]] = "def accuracy(out, y):\n    return (out.argmax(1) == y).sum().item()\n"
    if len(files) == 2:
        texts[files[1]] = "from .helpers import accuracy\n"
    texts["train.py"] = TRAIN.replace("from helpers import accuracy", line)
    assert warnings(tmp_path, texts) == [f"{files[0]}:2 item-in-loop"]


def test_base_classes_of_other_files_give_their_attributes(tmp_path: Path) -> None:
    base = """\
        import torch

        class Agent:
            def __init__(self):
                self.device = torch.device("cuda")
                self.net = torch.nn.Linear(4, 2).to(self.device)
        """
    agent = """\
        import torch
        from base import Agent

        class Greedy(Agent):
            def play(self, env):
                state = env.reset()
                for step in range(1000):
                    values = self.net(torch.randn(4, device=self.device))
                    state = env.step(values.argmax().item())
        """
    assert warnings(tmp_path, {"base.py": base, "agent.py": agent}) == ["agent.py:9 item-in-loop"]


def test_of_a_class_of_another_file_is_known_whatever_its_statements_bind(tmp_path: Path) -> None:
    base = """\
        import functools
        import torch

        def quietly(method):
            @functools.wraps(method)
            def wrapper(self, *args):
                with torch.no_grad():
                    return method(self, *args)
            return wrapper

        class Agent:
            device = torch.device("cuda")
            count: int = 4
            size = count * 2
            if True:
                half = size // 2

            @property
            def state(self):
                return self._state

            @state.setter
            def state(self, size):
                self._state = torch.zeros(size, device=self.device)

            @quietly
            def values(self, width=half):
                return self.state @ self.state
        """
    agent = """\
        import torch
        from base import Agent

        agent = Agent()
        agent.state = Agent.size
        for step in range(1000):
            agent.values().item()
            agent.state.tolist()
        """
    found = warnings(tmp_path, {"base.py": base, "agent.py": agent})
    assert found == ["agent.py:7 item-in-loop", "agent.py:8 item-in-loop"]


def test_of_a_class_of_another_file_what_its_statements_read_of_each_other_is_known(
    tmp_path: Path,
) -> None:
    base = """\
        import torch

        class Agent:
            where: str = "cpu"
            device = torch.device(where)
        """
    agent = """\
        import torch
        from base import Agent

        for step in range(1000):
            torch.zeros(4, device=Agent.device).sum().item()
        """
    assert warnings(tmp_path, {"base.py": base, "agent.py": agent}) == []
    on_gpu = base.replace("cpu", "cuda")
    found = warnings(tmp_path, {"base.py": on_gpu, "agent.py": agent})
    assert found == ["agent.py:5 item-in-loop"]


@pytest.mark.timeout(30)
def test_files_whose_functions_call_the_next_one_twice_are_soon_followed(tmp_path: Path) -> None:
    twice = "from f{0} import f{0}\ndef f{1}(x):\n    return f{0}(x) + f{0}(x + {1})\n"
    files = {f"f{n}.py": "import torch\n" + twice.format(n + 1, n) for n in range(22)}
    files["f22.py"] = "import torch\ndef f22(x):\n    return x.sum().item()\n"
    files["helpers.py"] = "from f0 import f0\ndef accuracy(out, y):\n    return f0(out)\n"
    assert warnings(tmp_path, {**files, "train.py": TRAIN}) == ["f22.py:3 item-in-loop"]


@pytest.mark.timeout(30)
def test_an_entangled_library_leaves_the_program_that_calls_it_to_be_followed(
    tmp_path: Path,
) -> None:
    steps = "\n".join(
        f"def f{n}(x, *given):\n    f{n + 1}(x, {n}, *given)\n    return f{n + 1}(x, *given)"
        for n in range(20)
    )
    library = f"{steps}\ndef f20(x, *given):\n    return x\ndef last(x):\n    return x.item()\n"
    program = """\
        import torch
        from library import f0, last

        f0(torch.ones(4))
        for step in range(1000):
            x = torch.ones(4, device="cuda").sum()
            last(x)
            x.item()
        """
    found = warnings(tmp_path, {"library.py": library, "program.py": program})
    assert found == ["library.py:64 item-in-loop", "program.py:8 item-in-loop"]


def test_files_that_import_each_other_are_followed_once(tmp_path: Path) -> None:
    one = "import torch\nimport two\ndef f(x):\n    return two.g(x)\n"
    two = "import torch\nimport one\ndef g(x):\n    return one.f(x)\n"
    assert warnings(tmp_path, {"one.py": one, "two.py": two}) == []


def test_files_that_import_all_of_each_other_keep_what_they_define(tmp_path: Path) -> None:
    files = {
        "helpers.py": "from a import *\ndef accuracy(out, y):\n    return out.sum().item()\n",
        "a.py": "from b import *\n",
        "b.py": "from helpers import *\n",
        "train.py": TRAIN.replace("import accuracy", "import *"),
    }
    assert warnings(tmp_path, files) == ["helpers.py:3 item-in-loop"]


def test_the_loop_that_makes_a_line_hot_is_named_with_its_file(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    helpers = tmp_path / "helpers.py"
    helpers.write_text("def accuracy(out, y):\n    return (out.argmax(1) == y).sum().item()\n")
    paths = [str(tmp_path / "train.py"), str(helpers)]
    project = rooflint.open_project(lambda: paths, _text)
    project.settle(str(helpers))
    file = project.file(str(helpers))
    assert file is not None
    (finding,) = rooflint.check(file, project=project)
    assert "on every step of the loop at train.py:9" in finding.message
    places = {(Path(b.span.path).name, b.span.line) for b in finding.because}
    assert {("train.py", 9), ("train.py", 14)} <= places


def test_names_that_no_file_of_the_project_has_stay_foreign(tmp_path: Path) -> None:
    (tmp_path / "torch").mkdir()
    (tmp_path / "torch" / "__init__.py").write_text("def randn(*a, **k): return 1\n")
    train = TRAIN.replace("    accuracy(out, y)", "    loss.item()")
    assert "train.py:14 item-in-loop" in warnings(tmp_path, {"train.py": train})


def test_what_another_file_imports_late_is_known_to_what_it_calls_then(tmp_path: Path) -> None:
    files = {
        "moves.py": """\
            def move(x):
                return x.item()
            """,
        "lazily.py": """\
            def chosen():
                try:
                    return move
                except NameError:
                    return None

            try:
                print(chosen())
                from moves import move
                mover = chosen()
            except ImportError:
                mover = None
            """,
        "train.py": """\
            import torch
            from lazily import mover

            x = torch.ones(3, device="cuda")
            for step in range(9):
                x = x * 2
                mover(x.sum())
            """,
    }
    assert warnings(tmp_path, files) == ["moves.py:2 item-in-loop"]


def test_names_of_other_files_are_followed_when_they_are_asked_for(tmp_path: Path) -> None:
    shared = """\
        import torch
        names = []
        names.append("cuda")
        def on(x, device):
            return x.to(device)
        class Scale:
            pass
        limit = 1
        limit = torch.ones(3)
        if torch.cuda.is_available():
            limit = on(limit, names[0])
        def read():
            return limit.sum().item()
        """
    package = "from shared import *\n"
    train = """\
        import torch
        from package import read
        model = torch.nn.Linear(4, 4).cuda()
        for batch in torch.randn(100, 4).cuda():
            model(batch).sum()
            read()
        """
    files = {"shared.py": shared, "package.py": package, "train.py": train}
    assert warnings(tmp_path, files) == ["shared.py:13 item-in-loop"]


EDITED = """import torch
from torch import nn

model = nn.Linear(8, 2).cuda()


def norm(x):
    return x.norm()


def helper(x):
    return norm(x)


def train(batches):
    for x in batches:
        out = model(x.cuda(non_blocking=True))
        helper(out)


def other(batches):
    for x in batches:
        print(model(x.cuda(non_blocking=True)))


train([torch.randn(4, 8)])
other([torch.randn(4, 8)])
"""


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("    return x.norm()", "    return x.norm().item()"),
        ("        helper(out)", "        if helper(out) > 1: break"),
        (".cuda()\n", "\n"),
        ("def norm(x):", "def norm(x, n=1):"),
        ("def norm(x):", "def normal(x):"),
        ("train([", "print(["),
        ("    return norm(x)", "    return norm(x"),
        ("import torch\n", "import torch\nimport time\n"),
    ],
)
def test_an_edit_finds_what_a_fresh_look_finds(old: str, new: str) -> None:
    project = rooflint.open_project(list, lambda path: None)
    before = rooflint.open_source("a.py", EDITED)
    rooflint.check(before, project=project)
    text = EDITED.replace(old, new, 1)
    after = rooflint.open_source("a.py", text, before)
    found = rooflint.check(after, project=project)
    assert found == rooflint.check(rooflint.open_source("a.py", text))
    back = rooflint.open_source("a.py", EDITED, after)
    assert rooflint.check(back, project=project) == rooflint.check(
        rooflint.open_source("a.py", EDITED)
    )


def test_an_edit_of_a_head_that_ends_with_its_body_is_followed() -> None:
    text = (
        "import torch\n\n\ndef scale(x,\n          by=torch.ones(1)): return x * by\n\n\n"
        "for step in range(99):\n    print(scale(torch.ones(1)).item())\n" + "x = 1\n" * 99
    )
    project = rooflint.open_project(list, lambda path: None)
    before = rooflint.open_source("a.py", text)
    assert not rooflint.check(before, project=project)
    after = rooflint.open_source("a.py", text.replace("(1)):", '(1, device="cuda")):'), before)
    assert [f.rule for f in rooflint.check(after, project=project)] == ["item-in-loop"]


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("class A(B, metaclass=M):", "class A(B, metaclass=N):"),
        ("class A(B):", "class A(C):"),
        ("@d\nclass A:", "@e\nclass A:"),
        ("def f(x=1):", "def f(x=2):"),
        ("def f() -> int:", "def f() -> float:"),
        ("def f():", "async def f():"),
    ],
)
def test_heads_that_differ_in_anything_are_no_new_body(old: str, new: str) -> None:
    body, edited = "\n    def inner(self): pass", "\n    def inner(self): ..."
    was, same, now = (
        [*rooflint.open_source("a.py", text).blocks]
        for text in (old + body, old + edited, new + body)
    )
    assert again._same_heads(was, same)
    assert again._same_heads(was, now) is None


def long_file(functions: int) -> str:
    """A file of many functions, one of which waits."""
    parts = ["import torch\n"]
    for i in range(functions):
        parts.append(
            f"def f{i}(x):\n    for step in range(9):\n        y = x * {i}\n"
            f"        y = y + torch.ones(2)\n        z = y.sum() if {i} else y\n    return z\n"
        )
    return "\n\n".join(parts)


def test_an_edit_in_a_long_file_follows_little_again() -> None:
    text = long_file(400)
    file = SourceFile.parse("long.py", text)
    following = Following(file, Program(lambda path: None))
    all_of_it = following.steps
    waits = "        y = torch.ones(2, device='cuda').sum(); y.item()\n"
    edited = text.replace("        y = x * 7\n", waits, 1)
    following.edit(SourceFile.parse("long.py", edited, file), frozenset())
    (stop,) = following.flows["long.py"].stops
    assert stop.wait.site.text == "y.item()"
    assert following.steps < all_of_it / 100
    assert not following.is_exact


def test_an_edit_follows_no_function_that_a_look_at_the_whole_file_leaves_out() -> None:
    inside = """
def outer(n):
    for step in range(n):
        def never_called(y=torch.ones(2, device='cuda')):
            while True:
                y.sum().item()
"""
    text = long_file(40) + inside
    file = SourceFile.parse("long.py", text)
    following = Following(file, Program(lambda path: None))
    edited = text.replace("        y = x * 7\n", "        y = x * 8\n", 1)
    following.edit(SourceFile.parse("long.py", edited, file), frozenset())
    assert not following.is_exact
    assert following.steps < 50
    assert not following.flows


def test_an_edit_follows_what_leads_to_it_and_leaves_the_rest_for_later() -> None:
    costly = "\n\ndef costly{}(x):\n" + 60 * "    x = changed(x) + 1\n"
    changed = "\n\ndef changed(x):\n    for step in range(9):\n        y = x * 7\n    return y\n"
    callers = "".join(costly.format(n) + f"\n\ncostly{n}(torch.ones(2))\n" for n in range(9))
    text = long_file(40) + changed + callers
    file = SourceFile.parse("long.py", text)
    following = Following(file, Program(lambda path: None))
    all_of_it = following.steps
    waits = "        y = torch.ones(2, device='cuda').sum(); y.item()\n"
    edited = text.replace(
        "range(9):\n        y = x * 7\n    return y", "range(9):\n" + waits + "    return y"
    )
    following.edit(SourceFile.parse("long.py", edited, file), frozenset())
    (stop,) = following.flows["long.py"].stops
    assert stop.wait.site.text == "y.item()"
    assert following.steps < all_of_it / 5


def test_a_decorator_that_measures_is_followed_wherever_it_is(tmp_path: Path) -> None:
    clocks = """\
        import time
        def timed(function):
            def wrapper(*args):
                start = time.perf_counter()
                result = function(*args)
                print(time.perf_counter() - start)
                return result
            return wrapper
        """
    train = """\
        import torch
        from clocks import timed
        @timed
        def step(x):
            return x @ x
        step(torch.randn(64, 64, device="cuda"))
        """
    found = warnings(tmp_path, {"clocks.py": clocks, "train.py": train})
    assert found == ["clocks.py:6 naive-timing"]


def test_what_is_let_go_of_needs_no_collector(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    (tmp_path / "helpers.py").write_text("def accuracy(out, y):\n    return (out == y).sum()\n")
    paths = [str(tmp_path / "train.py"), str(tmp_path / "helpers.py")]
    gc.collect()
    gc.disable()
    try:
        before = _objects_of_programs()
        check_files(paths, [], {str(Path(path).parent): Config() for path in paths}, 1, False)
        assert _objects_of_programs() == before
    finally:
        gc.enable()


def _objects_of_programs() -> int:
    return sum(isinstance(one, (Function, Machine)) for one in gc.get_objects())


CASES = sorted((Path(__file__).parent / "cases").glob("*.py"))


@pytest.mark.parametrize("path", CASES[::6], ids=lambda path: path.stem)
def test_after_any_edits_a_settled_file_reads_as_a_fresh_one(path: Path) -> None:
    dice = random.Random(path.stem)
    text = path.read_text()
    project = rooflint.open_project(list, lambda path: None)
    file = rooflint.open_source("case.py", text)
    for _ in range(12):
        rooflint.check(file, project=project)
        lines = text.split("\n")
        at = dice.randrange(len(lines))
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
        new = dice.choice(["x = 1", "loss = loss.item()", "def f(x):", "print(loss)", ")", "if x:"])
        text = "\n".join([*lines[:at], indent + new, *lines[at + dice.choice([0, 1]) :]])
        file = rooflint.open_source("case.py", text, file)
    rooflint.check(file, project=project)
    project.settle("case.py")
    alone = rooflint.open_project(list, lambda path: None)
    assert rooflint.check(file, project=project) == rooflint.check(file, project=alone)


def test_how_another_file_asks_for_a_package_is_not_followed(tmp_path: Path) -> None:
    asks = """\
        from found import is_there

        if is_there("apex"):
            from apex import norm
            HAS_APEX = True
        else:
            def norm(x):
                return x.norm().item()
        """
    train = """\
        import torch
        from asks import norm

        x = torch.ones(9, device="cuda")
        for step in range(1000):
            norm(x)
        """
    files = {"train.py": train, "asks.py": asks, "found.py": "def is_there(name): ...\n"}
    assert warnings(tmp_path, files) == ["asks.py:8 item-in-loop"]
    read: list[str] = []

    def text_of(path: str) -> str | None:
        read.append(Path(path).name)
        return _text(path)

    project = rooflint.open_project(lambda: [str(tmp_path / "train.py")], text_of)
    file = project.file(str(tmp_path / "train.py"))
    assert file is not None
    rooflint.check(file, project=project)
    assert "asks.py" in read
    assert "found.py" not in read


def test_what_a_package_shows_to_type_checkers_alone_is_not_read(tmp_path: Path) -> None:
    package = tmp_path / "package"
    package.mkdir()
    lazily = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    from .part import *\n"
    (package / "__init__.py").write_text(lazily)
    (package / "part.py").write_text("class Net: pass\n")
    train = tmp_path / "train.py"
    train.write_text("import torch\nfrom package import Net\nNet()\n")
    asked: list[str] = []

    def read(path: str) -> str | None:
        asked.append(Path(path).name)
        return _text(path)

    project = rooflint.open_project(lambda: [str(train)], read)
    file = project.file(str(train))
    assert file is not None
    rooflint.check(file, project=project)
    assert "__init__.py" in asked
    assert "part.py" not in asked


class Desk:
    """Files of a project, some of them open, as an editor and others change them."""

    def __init__(self, folder: Path, files: Mapping[str, str]):
        self.folder = folder
        self.opened: dict[str, SourceFile] = {}
        for name, text in files.items():
            self.write(name, text)
        self.project = rooflint.open_project(self.paths, self.read, [str(folder)])

    def paths(self) -> list[str]:
        return sorted(map(str, self.folder.glob("*.py")))

    def read(self, path: str) -> str | None:
        return self.opened[path].text if path in self.opened else _text(path)

    def write(self, name: str, text: str) -> None:
        (self.folder / name).write_text(text)

    def edit(self, name: str, text: str) -> None:
        path = str(self.folder / name)
        self.opened[path] = rooflint.open_source(path, text, self.opened.get(path))
        rooflint.check(self.opened[path], project=self.project)

    def close(self, name: str) -> None:
        del self.opened[str(self.folder / name)]
        self.changed(name)

    def changed(self, name: str) -> None:
        self.project.changed(str(self.folder / name))

    def settled(self, name: str) -> list[str]:
        """`line rule` of what is known of a file in the end."""
        for path, file in self.opened.items():
            rooflint.check(file, project=self.project)
            self.project.settle(path)
        file = self.opened[str(self.folder / name)]
        return [f"{f.span.line} {f.rule}" for f in rooflint.check(file, project=self.project)]


GIVES = 'import torch\ndef get():\n    return torch.ones(3, device="cuda")\n'
ASKS = """\
import torch
import gives
for step in range(100):
    y = gives.get()
    if y.sum() > 0:
        print(step)
"""
ASKED = ["5 tensor-in-condition"]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    found = Desk(tmp_path, {"gives.py": GIVES, "asks.py": ASKS})
    found.edit("asks.py", ASKS)
    assert found.settled("asks.py") == ASKED
    return found


def test_a_file_is_judged_anew_when_one_that_it_rests_on_is_edited(desk: Desk) -> None:
    desk.edit("gives.py", GIVES.replace("cuda", "cpu"))
    assert desk.settled("asks.py") == []
    desk.edit("gives.py", GIVES)
    assert desk.settled("asks.py") == ASKED


def test_a_file_that_is_closed_unsaved_counts_as_it_is_on_disk(desk: Desk) -> None:
    desk.edit("gives.py", GIVES.replace("cuda", "cpu"))
    assert desk.settled("asks.py") == []
    desk.close("gives.py")
    assert desk.settled("asks.py") == ASKED


def test_files_that_come_and_go_on_disk_are_noticed(desk: Desk) -> None:
    (desk.folder / "gives.py").unlink()
    desk.changed("gives.py")
    assert desk.settled("asks.py") == []
    desk.write("gives.py", GIVES)
    desk.changed("gives.py")
    assert desk.settled("asks.py") == ASKED


def test_a_file_that_was_never_saved_can_be_imported(desk: Desk) -> None:
    desk.edit("asks.py", ASKS.replace("import gives", "import new as gives"))
    desk.edit("new.py", GIVES)
    assert desk.settled("asks.py") == ASKED


SHOWS = "import torch\ndef show(x):\n    print(x.item())\n"
CALLS = """\
import torch
from shows import show
for step in range(100):
    show(torch.ones(3, device="cuda").sum())
"""


def test_what_a_user_said_is_forgotten_when_it_is_one_no_more(tmp_path: Path) -> None:
    desk = Desk(tmp_path, {"shows.py": SHOWS, "calls.py": CALLS})
    desk.edit("shows.py", SHOWS)
    assert desk.settled("shows.py") == ["3 item-in-loop"]
    desk.write("calls.py", CALLS.replace("from shows import show", "show = print"))
    desk.changed("calls.py")
    assert desk.settled("shows.py") == []
    desk.write("calls.py", CALLS)
    desk.changed("calls.py")
    assert desk.settled("shows.py") == ["3 item-in-loop"]
    (tmp_path / "calls.py").unlink()
    desk.changed("calls.py")
    assert desk.settled("shows.py") == []


def test_what_is_cancelled_is_found_out_the_next_time(desk: Desk) -> None:
    desk.edit("gives.py", GIVES.replace("cuda", "cpu"))
    asks = str(desk.folder / "asks.py")
    told_to_stop = Event()
    told_to_stop.set()
    assert not desk.project.settle(asks, told_to_stop)
    for at in range(1, 40):
        desk.project.settle(asks, _After(at))
    assert desk.settled("asks.py") == []


class _After(Event):
    """Is set when it is asked for the nth time."""

    def __init__(self, times: int):
        super().__init__()
        self._left = times

    def is_set(self) -> bool:
        self._left -= 1
        return self._left < 0


def test_a_listing_that_was_cancelled_is_not_taken_for_the_whole(tmp_path: Path) -> None:
    Desk(tmp_path, {"shows.py": SHOWS, "calls.py": CALLS})
    shows = str(tmp_path / "shows.py")
    cancelled = Event()

    def paths() -> tuple[str, ...]:
        cancelled.set()
        return python_files(tmp_path, rooflint.open_configs(), 10, told_to_stop[0]).paths

    told_to_stop: list[Event | None] = [cancelled]
    project = rooflint.open_project(paths, _text, [str(tmp_path)])
    file = rooflint.open_source(shows, SHOWS)
    assert not rooflint.check(file, project=project)
    assert not project.settle(shows, cancelled)
    told_to_stop[0] = None
    assert project.settle(shows)
    assert [f.rule for f in rooflint.check(file, project=project)] == ["item-in-loop"]


def test_a_script_without_gpus_is_followed_once_something_that_it_imports_has_one(
    tmp_path: Path,
) -> None:
    """Following what a test of Python's own imports took two seconds, for nothing."""
    files = {
        "main.py": "import deep\nif __name__ == '__main__':\n    deep.run(deep.make())\n",
        "deep.py": "from deeper import make\ndef run(x):\n    for i in range(9): print(x.sum())\n",
        "deeper.py": "def make(): return 0\n",
    }
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    main, deep, deeper = (str(tmp_path / name) for name in files)
    project = rooflint.open_project(lambda: [main, deep, deeper], _text, [str(tmp_path)])

    def follow() -> Following:
        file = project.file(main)
        assert file is not None
        return Following(file, project.program)

    def found() -> list[str]:
        project.settle(deep)
        file = project.file(deep)
        assert file is not None
        return [finding.rule for finding in rooflint.check(file, project=project)]

    assert follow().steps == 0
    assert follow().used == {deep, deeper}
    assert found() == []
    (tmp_path / "deeper.py").write_text("import torch\ndef make(): return torch.ones(3).cuda()\n")
    project.changed(deeper)
    assert found() == ["tensor-as-text"]
    assert follow().steps > 0


@pytest.mark.parametrize("path", CASES[::12], ids=lambda path: path.stem)
def test_what_stands_in_a_module_is_known_after_any_edits_as_by_a_walk_through_all_of_it(
    path: Path,
) -> None:
    dice = random.Random(path.stem)
    text = path.read_text()
    file = rooflint.open_source("case.py", text)
    for _ in range(20):
        lines = text.split("\n")
        at = dice.randrange(len(lines))
        indent = " " * (len(lines[at]) - len(lines[at].lstrip()))
        new = dice.choice(["total = 0", "global lines", "class A: pass", "@here", "print(at)", ")"])
        text = "\n".join([*lines[:at], indent + new, *lines[at + dice.choice([0, 1]) :]])
        file = rooflint.open_source("case.py", text, file)
        known = module_scope(file)
        if dice.random() < 0.3:  # The other file takes its place.
            assert known == module_scope(replace(file, path="b", blocks=(*file.blocks,)))


def module_scope(file: SourceFile) -> tuple[object, ...]:
    site = Site(file.blocks[0], ast.Pass())
    scope = scope_of(file, site)
    names = {name: {*map(id, scope.uses(name))} for name in scope.names if scope.uses(name)}
    parents = {node: id(parent) for node, parent in scope.parents.items()}
    others = {name: {*given} for name, given in scope.others.items() if given}
    return names, {*scope.zeros}, others, {n for n in names if scope.is_shared(n)}, parents
