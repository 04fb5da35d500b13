"""The page around its value: nothing in it can act but its own script and style.

The content security policy names both by their hashes and allows nothing else, no network either.
The value lies in the page as JSON in which no character can end the element around it.
"""

from __future__ import annotations

import json
from base64 import b64encode
from collections.abc import Mapping
from hashlib import sha256
from html import escape
from importlib.resources import files


def render(value: Mapping[str, object]) -> str:
    """One page; the same value gives the same bytes."""
    script, style = _asset("page.js"), _asset("page.css")
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src '{_digest(script)}'",
            f"style-src '{_digest(style)}'",
            "base-uri 'none'",
            "form-action 'none'",
        )
    )
    return (
        "<!DOCTYPE html>\n"
        '<html lang="en">\n'
        "<head>\n"
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{policy}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        f"<title>{_text(value['title'])} · rooflint</title>\n"
        f"<style>{style}</style>\n"
        "</head>\n"
        "<body>\n"
        '<main id="page"><noscript>This page needs JavaScript, which is in it.</noscript></main>\n'
        f'<script type="application/json" id="value">{_json(value)}</script>\n'
        f"<script>{script}</script>\n"
        "</body>\n"
        "</html>\n"
    )


def _text(value: object) -> str:
    """What can be written as text of a page; a name may hold halves of characters."""
    return escape(str(value).encode("utf-8", "replace").decode())


def _asset(name: str) -> str:
    return (files("rooflint.pages") / "assets" / name).read_text(encoding="utf-8")


def _digest(text: str) -> str:
    return f"sha256-{b64encode(sha256(text.encode()).digest()).decode()}"


def _json(value: Mapping[str, object]) -> str:
    """JSON without `<`, `>` and `&`; all that is not ASCII is escaped, lone surrogates too."""
    text = json.dumps(value, allow_nan=False, separators=(",", ":"))
    for character in "<>&":
        text = text.replace(character, f"\\u{ord(character):04x}")
    return text
