"""Starts the language server out of the folder it lies in, as the VS Code extension does.

    python -I server/launch.py

No PYTHONPATH is needed, and none is set: the profiled script and its children would inherit it.
The bundled libraries come first, so an older pygls in the interpreter's own packages is no harm.
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent

if __name__ == "__main__":
    sys.path[:0] = [str(ROOT / "bundled" / "libs"), str(ROOT / "analyzers"), str(ROOT / "server")]

    from rooflint.cli import main

    sys.exit(main(["server"]))
