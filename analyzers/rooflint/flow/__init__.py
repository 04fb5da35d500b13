"""Where each value lives, which loops run it, which helpers hide a wait."""

from __future__ import annotations

from dataclasses import dataclass

from rooflint.source import SourceFile


@dataclass(frozen=True, slots=True)
class DeviceFlow:
    """What running a file would make the host wait for."""

    @staticmethod
    def of(file: SourceFile) -> DeviceFlow:
        return DeviceFlow()
