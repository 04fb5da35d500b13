"""A project whose last recording is one of an H200."""

from __future__ import annotations

import gzip
import hashlib
import json
from pathlib import Path


def h200_project(folder: Path) -> tuple[Path, str]:
    """Made in a folder: the script, its text, and the trace of it."""
    tests = Path(__file__).parent
    source = (tests / "scripts" / "train_gpu.py").read_bytes()
    file, digest = folder / "train_gpu.py", hashlib.sha256(source).hexdigest()
    file.write_bytes(source)
    recording = folder / ".rooflint" / "recordings" / "h200"
    (recording / "sources").mkdir(parents=True)
    (recording / "sources" / f"{digest}.py").write_bytes(source)
    trace = gzip.decompress((tests / "profiles/recordings/line_trace.json.gz").read_bytes())
    named = trace.replace(b'"train_gpu.py:', f'"{file.as_posix()}:'.encode())
    (recording / "trace.json.gz").write_bytes(gzip.compress(named, 1))
    device = {"kind": "cuda", "name": "NVIDIA H200", "count": 1, "compute_capability": [9, 0]}
    files = {str(file): {"sha256": digest, "loops": [[56, 70]]}}
    meta = {"format": 1, "device": device, "files": files, "exit": {"code": 0}}
    (recording / "meta.json").write_text(json.dumps(meta))
    return file, source.decode()
