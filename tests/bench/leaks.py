"""Profiles again and again in one session of the server, and looks at what is left behind.

    .venv/bin/python tests/bench/leaks.py PROFILES

Open files, threads, memory and temporary files after the first few profiles and after all. Ends
with 1 if any of them grew. `test_runs.py` has a short form.
"""

from __future__ import annotations

import os
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tests"))

from raw_editor import SERVER, RawEditor  # noqa: E402

FIRST = 3
"""Profiles after which all is imported, and threads are there that wait for work."""
SCRIPT = "import time\nwhile time.process_time() < 0.2: sum(range(1000))\n"


class Left(NamedTuple):
    open_files: int
    threads: int
    memory_mb: int
    temporary_files: int


def main() -> int:
    profiles = int(sys.argv[1])
    with tempfile.TemporaryDirectory(prefix="leaks-") as folder:
        temporary, project = Path(folder) / "temporary", Path(folder) / "project"
        temporary.mkdir()
        project.mkdir()
        (project / "run.py").write_text(SCRIPT)
        source = os.pathsep.join([str(ROOT / "analyzers"), str(ROOT / "server")])
        os.environ.update(TMPDIR=str(temporary), PYTHONPATH=source)
        with RawEditor(SERVER) as editor:
            editor.begin(project)
            found = [profiled(editor, project, temporary) for _ in range(profiles)]
            assert editor.leave() == 0
    for number in sorted({FIRST, profiles // 2, profiles}):
        print(f"after {number} profiles: {found[number - 1]}")
    first, last = found[FIRST - 1], found[-1]
    grew = [
        name
        for name, was, now, room in zip(Left._fields, first, last, (4, 8, 16, 0), strict=True)
        if now > was + room
    ]
    print(f"grew: {', '.join(grew)}" if grew else "nothing grew")
    return 1 if grew else 0


def profiled(editor: RawEditor, project: Path, temporary: Path) -> Left:
    """What is left of one more profile. Threads that only wait count up to asyncio's limit."""
    done = editor.execute("profile", (project / "run.py").as_uri())
    assert "recording" in done, done
    process = Path(f"/proc/{editor.process.pid}")
    status = dict(line.split(":", 1) for line in (process / "status").read_text().splitlines())
    return Left(
        len(list((process / "fd").iterdir())),
        int(status["Threads"]),
        int(status["VmRSS"].split()[0]) // 1024,
        len(list(temporary.iterdir())),
    )


if __name__ == "__main__":
    sys.exit(main())
