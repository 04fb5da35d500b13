import contextlib
import io

import torch
from torch import nn


class Fabric:
    def __init__(self, accelerator="auto"):
        self.device = torch.device("cuda" if accelerator != "cpu" and torch.cuda.is_available() else "cpu")

    def setup(self, module, optimizer):
        return module.to(self.device), optimizer

    def to_device(self, obj):
        if isinstance(obj, (list, tuple)):
            return type(obj)(self.to_device(o) for o in obj)
        return obj.to(self.device)

    @contextlib.contextmanager
    def autocast(self):
        with torch.autocast(self.device.type, dtype=torch.bfloat16):
            yield

    def backward(self, loss):
        loss.backward()

    def all_reduce(self, t):
        return t

    def save(self, state):
        buffer = io.BytesIO()
        torch.save({k: v.state_dict() if hasattr(v, "state_dict") else v for k, v in state.items()}, buffer)
        return buffer.tell()


class MeanMetric:
    def __init__(self):
        self.total, self.weight = 0.0, 0

    def update(self, value, weight=1):
        self.total += float(value) * weight
        self.weight += weight


def main(steps=6):
    torch.manual_seed(0)
    fabric = Fabric()
    model = nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, 2))
    model, opt = fabric.setup(model, torch.optim.SGD(model.parameters(), lr=0.1))
    metric, best, size = MeanMetric(), float("inf"), 0
    data = [(torch.randn(4, 5), torch.randint(0, 2, (4,))) for _ in range(steps)]
    for batch in data:
        x, y = fabric.to_device(batch)
        with fabric.autocast():
            loss = nn.functional.cross_entropy(model(x), y)
        opt.zero_grad()
        fabric.backward(loss)
        opt.step()
        metric.update(fabric.all_reduce(loss.detach()), len(y))
        if metric.total / metric.weight < best:
            best = metric.total / metric.weight
            size = fabric.save({"model": model, "best": best})
    return size


print(main() > 0)
