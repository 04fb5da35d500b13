"""Starts a child, says so, and never ends; `stubborn` ignores what asks it to end."""

import signal
import subprocess
import sys

import torch

if "stubborn" in sys.argv:
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
child = subprocess.Popen(
    [sys.executable, "-c", "import time; time.sleep(600)"],
    start_new_session=True,
    stdout=subprocess.DEVNULL,
    stderr=subprocess.DEVNULL,
)
x = torch.ones(64, 64)
print("child", child.pid, flush=True)
while True:
    x = (x @ x).sigmoid()
