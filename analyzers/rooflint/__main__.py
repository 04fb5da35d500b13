"""`python -m rooflint`."""

import sys
from pathlib import Path

from rooflint.cli import run

# `-m` puts the folder one stands in before all others. What lies there may be anybody's, and what
# is imported later must not come from there.
if sys.path[0] in ("", str(Path.cwd())):
    del sys.path[0]

run()
