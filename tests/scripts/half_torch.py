"""Steps that are half Python's and half torch's, in a measure that is printed.

`half_torch.py N` counts N words a step; the share of the steps' CPU time that this took is printed.
"""

import sys
import time

import torch


def count(words):
    counts = {}
    for number in range(words):
        word = str(number % 977)
        counts[word] = counts.get(word, 0) + 1
    return torch.tensor([float(len(counts))])


def main():
    torch.set_num_threads(1)
    words = int(sys.argv[1])
    model = torch.nn.Linear(1024, 1024)
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-3)
    batch = torch.randn(256, 1024)
    python_s, began_s = 0.0, 0.0
    for step in range(30):
        if step == 10:  # none of the steps after these is recorded
            python_s, began_s = 0.0, time.thread_time()
        start_s = time.thread_time()
        bias = count(words)
        python_s += time.thread_time() - start_s
        loss = (model(batch) + bias).pow(2).mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
    print("python", round(1000 * python_s / (time.thread_time() - began_s)))


main()
