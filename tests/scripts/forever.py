"""Starts a child, says so and when it is at work, and never ends; `stubborn` will not be asked to."""

import itertools
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
for step in itertools.count():
    x = (x @ x).sigmoid()
    if step == 100:
        print("busy", flush=True)
