"""The argument vectors that start the recorder, and the settings that it reads."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rooflint.runs.interpreter import find_launcher
from rooflint.runs.notebook import cells_to_run
from rooflint.version import __version__

if TYPE_CHECKING:
    from rooflint.runs.request import ProfileRequest

LAUNCHER = Path(__file__).parents[2] / "rooflint_recorder" / "launch.py"


def recorder_command(request: ProfileRequest, settings: Path) -> list[str]:
    """The script's own command with the recorder before the script."""
    before = (request.python,)
    if request.launcher:
        before = (find_launcher(request), *request.launcher[1:])
    return [*before, str(LAUNCHER), str(settings), *request.target]


def write_settings(folder: Path, request: ProfileRequest, mode: str, **more: Any) -> Path:
    """What the recorder is to do, in a file that lies beside the recording while it is made."""
    path = folder / f"{mode}.settings.json"
    settings = {
        "mode": mode,
        "folder": str(folder),
        "root": str(Path(request.root).absolute()),
        "rooflint": __version__,
        "window": asdict(request.window),
        "notebook": cells_to_run(request),
        **more,
    }
    path.write_text(json.dumps(settings), encoding="utf-8")
    return path


def environment(request: ProfileRequest) -> dict[str, str]:
    """The script's own, and ROOFLINT=1 for scripts that want to know."""
    return {**(os.environ if request.environment is None else request.environment), "ROOFLINT": "1"}
