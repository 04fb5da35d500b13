"""What a rule is."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from rooflint.flow import DeviceFlow
from rooflint.model import Finding
from rooflint.source import SourceFile


@dataclass(frozen=True, slots=True)
class Rule:
    """A name, which is one name everywhere; how to check; and the page that explains it."""

    name: str
    check: Callable[[SourceFile, DeviceFlow], Iterator[Finding]]
    docs: str

    @property
    def summary(self) -> str:
        return self.docs.strip().partition("\n")[0]
