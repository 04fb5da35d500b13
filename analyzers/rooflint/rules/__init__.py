"""What is worth a squiggle; one file per rule."""

from __future__ import annotations

from collections.abc import Iterable

from rooflint.config import Config, closest, suppressed_rules
from rooflint.flow import DeviceFlow, Project
from rooflint.model import Finding, Fix, RooflintError
from rooflint.rule import Rule
from rooflint.rules import (
    blocking_copy,
    copy_to_host,
    data_dependent_shape,
    distribution_check,
    hidden_check,
    item_in_loop,
    linalg_check,
    naive_timing,
    synchronize_in_loop,
    tensor_as_index,
    tensor_as_text,
    tensor_in_condition,
    tensor_iterated,
    tensor_to_number,
    unfinished_copy,
    unknown_rule,
)
from rooflint.source import SourceFile

RULES: tuple[Rule, ...] = (
    blocking_copy.RULE,
    copy_to_host.RULE,
    data_dependent_shape.RULE,
    distribution_check.RULE,
    hidden_check.RULE,
    item_in_loop.RULE,
    linalg_check.RULE,
    naive_timing.RULE,
    synchronize_in_loop.RULE,
    tensor_as_index.RULE,
    tensor_as_text.RULE,
    tensor_in_condition.RULE,
    tensor_iterated.RULE,
    tensor_to_number.RULE,
    unfinished_copy.RULE,
    unknown_rule.RULE,
)

NAMES = frozenset(rule.name for rule in RULES)


def check_file(
    file: SourceFile, config: Config | None = None, project: Project | None = None
) -> tuple[Finding, ...]:
    """All findings of one file, in order of their place."""
    config = (config or Config()).of_file(file.path)
    if project is not None:
        flow = project.flow_of(file)
    elif "torch" in file.text:
        flow = DeviceFlow.of(file)
    else:
        return ()
    suppressed = suppressed_rules(file.lines)
    mended = file.mended_lines()
    findings: list[Finding] = []
    for rule in RULES:
        if config.wants(rule.name):
            findings += _run(rule, file, flow, config)
    kept = [
        f
        for f in findings
        if f.rule not in suppressed.get(f.span.line, ()) and f.span.line not in mended
    ]
    return tuple(sorted(kept, key=lambda f: (f.span, f.rule)))


def with_known_rules(config: Config) -> Config:
    """The same settings. Raises `RooflintError` if they name a rule that does not exist."""
    places: list[tuple[str, Iterable[str]]] = [
        ("select", config.select),
        ("ignore", config.ignore),
        ("severity", config.severity),
    ]
    for own in config.per_file:
        place = f"per-file.{own.pattern!r}"
        places += [
            (f"{place}.select", own.select or ()),
            (f"{place}.ignore", own.ignore),
            (f"{place}.severity", own.severity),
        ]
    for place, names in places:
        for name in names:
            if name not in NAMES:
                file = config.root / "pyproject.toml" if config.root else "pyproject.toml"
                raise RooflintError(
                    f"{file}: tool.rooflint.{place} names a rule {name!r} that does not exist; "
                    f"{closest(name, sorted(NAMES))}"
                )
    return config


def _run(rule: Rule, file: SourceFile, flow: DeviceFlow, config: Config) -> list[Finding]:
    from dataclasses import replace

    try:
        found = list(rule.check(file, flow))
    except Exception:
        # A fault of ours costs this rule on this file, and is told to whoever listens.
        import logging

        logging.getLogger("rooflint").exception("%s failed on %s", rule.name, file.path)
        return []
    severity = config.severity.get(rule.name)
    return [replace(f, severity=severity or f.severity, fixes=_within(file, f)) for f in found]


def _within(file: SourceFile, finding: Finding) -> tuple[Fix, ...]:
    """The fixes that change this file alone: others may use what they change elsewhere."""
    return tuple(
        fix for fix in finding.fixes if all(edit.span.path == file.path for edit in fix.edits)
    )
