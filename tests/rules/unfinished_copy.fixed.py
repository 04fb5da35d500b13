import numpy as np
import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)


def read_at_once(x):
    host = model(x).detach().to("cpu", non_blocking=True)
    print(host.shape, len(host))  # fine: the host knows the shape
    first = host[0]  # fine: a view reads nothing
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    rows = host.numpy()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    best = host.argmax()
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    double = host * 2
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    print(first)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    if first[0] > 0:
        if torch.cuda.is_available():
            torch.cuda.synchronize()
        return np.mean(host)
    return rows, best, double


def read_after_waiting(x):
    host = model(x).detach().to("cpu", non_blocking=True)
    torch.cuda.synchronize()
    return host.numpy()  # fine


def read_after_an_event(x):
    host = model(x).detach().to("cpu", non_blocking=True)
    copied = torch.cuda.Event()
    copied.record()
    copied.synchronize()
    return host.numpy()  # fine


def read_after_a_stream(x):
    stream = torch.cuda.Stream()
    with torch.cuda.stream(stream):
        host = model(x).detach().to("cpu", non_blocking=True)
    stream.synchronize()
    return host.tolist()  # fine


def read_after_another_wait(x):
    out = model(x).detach()
    host = out.to("cpu", non_blocking=True)
    total = out.sum().item()
    return host.numpy(), total  # fine: the item has waited for all that was queued before


buffer = torch.empty(4, 2, pin_memory=True)


def read_a_buffer(x):
    buffer.copy_(model(x).detach(), non_blocking=True)
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return buffer.sum()


def one_behind(batches):
    before = None
    for x in batches:
        copied = torch.cuda.Event()
        host = model(x).detach().to("cpu", non_blocking=True)
        copied.record()
        if before is not None:
            before[1].synchronize()
            print(before[0].sum())  # fine: its event was waited for
        before = (host, copied)


def back_to_the_gpu(x):
    host = model(x).detach().to("cpu", non_blocking=True)
    return host.to(device, non_blocking=True) * 2  # fine: the GPU's queue keeps the order


x = torch.randn(4, 8, device=device)
read_at_once(x)
read_after_waiting(x)
read_after_an_event(x)
read_after_a_stream(x)
read_after_another_wait(x)
read_a_buffer(x)
one_behind([x, x])
back_to_the_gpu(x)
