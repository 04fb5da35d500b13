"""What is worth a squiggle; one file per rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from rooflint.config import Config, closest
from rooflint.faults import say_once
from rooflint.flow import DeviceFlow, Project
from rooflint.ignore import ignores_in
from rooflint.model import Finding, Fix, RooflintError
from rooflint.plain import replace
from rooflint.rule import Rule
from rooflint.rules import (
    blocking_copy,
    copy_to_host,
    data_dependent_shape,
    debugging_left_on,
    distribution_check,
    empty_cache_in_loop,
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
    unused_ignore,
)
from rooflint.source import TOO_LARGE, TOO_MUCH, SourceFile

RULES: tuple[Rule, ...] = (
    blocking_copy.RULE,
    copy_to_host.RULE,
    data_dependent_shape.RULE,
    debugging_left_on.RULE,
    distribution_check.RULE,
    empty_cache_in_loop.RULE,
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
    unused_ignore.RULE,
)

NAMES = frozenset(rule.name for rule in RULES)


def check_file(
    file: SourceFile, config: Config | None = None, project: Project | None = None
) -> tuple[Finding, ...]:
    """All findings of one file, in order of their place."""
    if project is None and "torch" not in file.text:
        return ()
    flow = project.flow_of(file) if project is not None else DeviceFlow.of(file)
    if not flow.is_whole:
        say_once(entangled(file.path))
    problem = file.syntax_error
    if problem is not None and problem.message in (TOO_LARGE, TOO_MUCH):
        say_once(f"{file.path}: {problem.message}: {problem.remedy}")
    return judge(file, flow, config)


def entangled(path: str) -> str:
    """What to say of a file that was followed in part."""
    return (
        f"{path} was checked in part: it is so long, or its functions call each other so often,"
        " that not all of it is followed; split it to have all of it checked"
    )


def judge(file: SourceFile, flow: DeviceFlow, config: Config | None = None) -> tuple[Finding, ...]:
    """The same of a file that was followed."""
    config = (config or Config()).of_file(file.path)
    flow = flow.assuming(config.assume_device)
    ignores = ignores_in(file)
    mended = file.mended_lines()
    findings: list[Finding] = []
    for rule in RULES:
        if config.wants(rule.name):
            findings += _run(rule, file, flow, config)
    # Each comment is asked, so that each that is right is known to be.
    kept = [f for f in findings if not [i for i in ignores if i.silences(f)]]
    if ignores and config.wants(unused_ignore.NAME):
        kept += _with_severity(
            unused_ignore.judge(file, ignores, lambda name: name in NAMES and config.wants(name)),
            config,
        )
    shown = [f for f in kept if f.span.line not in mended]
    if mended:
        shown = [replace(f, fixes=_clear_of(mended, f)) for f in shown]
    return tuple(sorted(shown, key=lambda f: (f.span, f.rule)))


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
    try:
        found = list(rule.check(file, flow)) if rule.check else []
    except Exception as fault:
        from rooflint.faults import tell

        tell(f"{rule.name} was left out for {file.path}", fault)
        return []
    return [replace(f, fixes=_within(file, f)) for f in _with_severity(found, config)]


def _with_severity(findings: Iterable[Finding], config: Config) -> Iterator[Finding]:
    """Each as severe as the settings say, or else as its evidence does."""
    for finding in findings:
        severity = config.severity.get(finding.rule)
        yield replace(finding, severity=severity) if severity else finding


def _within(file: SourceFile, finding: Finding) -> tuple[Fix, ...]:
    """The fixes that change this file alone: others may use what they change elsewhere."""
    return tuple(
        fix for fix in finding.fixes if all(edit.span.path == file.path for edit in fix.edits)
    )


def _clear_of(mended: frozenset[int], finding: Finding) -> tuple[Fix, ...]:
    """The fixes that change no line which is half typed: other text than stands there was read."""
    return tuple(
        fix
        for fix in finding.fixes
        if mended.isdisjoint(
            line for edit in fix.edits for line in range(edit.span.line, edit.span.end_line + 1)
        )
    )
