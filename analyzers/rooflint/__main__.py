"""`python -m rooflint`."""

import sys

from rooflint.cli import main

sys.exit(main())
