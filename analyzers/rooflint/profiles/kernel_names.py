"""Kernel names, which profilers spell differently."""

from __future__ import annotations

import re


def base_name(name: str) -> str:
    """The function's own name, without what it is a member or an instance of."""
    return name.replace("<unnamed>::", "").partition("<")[0].rpartition("::")[2]


def normal_name(name: str) -> str:
    """A kernel's name, spelled the same whether Kineto (c++filt) or ncu wrote it.

    They spell template arguments differently (`3ul` and `(unsigned long)3`), and ncu names
    parameters by their template (`T2`): so all parameters are left out but those of lambdas, and
    the rest is spelled alike.
    """
    text = name
    for wanted, pattern in _SPELLINGS:
        text = pattern.sub(wanted, text)
    kept: list[str] = []
    depth = 0
    in_template = 0
    for position, character in enumerate(text):
        if character == "(" and (depth or not text.startswith("lambda", position - 6)):
            if not depth and not in_template and position:
                break  # the kernel's own parameters
            depth += 1
        elif not depth:
            in_template += (character == "<") - (character == ">")
            kept.append(character)
        if character == ")" and depth:
            depth -= 1
    return "".join(kept)


_SPELLINGS = [
    ("", re.compile(r"\bvoid (?=[A-Za-z_])")),  # what a function in an argument returns
    ("<unnamed>", re.compile(r"\(anonymous namespace\)")),
    ("true", re.compile(r"\(bool\)1")),
    ("false", re.compile(r"\(bool\)0")),
    ("", re.compile(r"\((?:unsigned |signed )?(?:int|long|short|char|long long)\)(?=-?\d)")),
    (r"\1", re.compile(r"\b(\d+)(?:ul|u|l|ull|ll)\b")),
    (r"{lambda(\1)#\2}", re.compile(r"\[lambda\((.*?)\) \(instance (\d+)\)\]")),
    ("", re.compile(r"\s+")),
]
