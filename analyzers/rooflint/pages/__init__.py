"""The roofline page: a report as one HTML page that needs nothing else, in an editor or alone.

- `value`: a report as the plain JSON value that the page shows
- `html`: the page around that value, closed off from the network and from hostile names
- `assets`: its script, built from extension/page by `npm run bundle:page`, and its style
"""

from __future__ import annotations

from rooflint.model import Report
from rooflint.pages.html import render
from rooflint.pages.value import page_value


def make_page(report: Report) -> str:
    """The report as HTML."""
    return render(page_value(report))
