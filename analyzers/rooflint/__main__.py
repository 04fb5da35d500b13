"""`python -m rooflint`."""

import os
import sys

# `-m` puts the folder one stands in before all others. What lies there may be anybody's, and what
# is imported from here on must not come from there.
if sys.path[0] in ("", os.getcwd()):  # noqa: PTH109 (pathlib would come from there)
    del sys.path[0]

from rooflint.cli import run

run()
