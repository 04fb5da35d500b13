import time
from dataclasses import dataclass

import torch
from torch import nn


@dataclass
class Result:
    seconds: float
    items: int

    @property
    def per_second(self):
        return self.items / self.seconds


class Benchmark:
    def __init__(self, model, batch, device, warmup=3, iters=10):
        self.model, self.batch, self.device = model, batch, device
        self.warmup, self.iters = warmup, iters

    def _wait(self):
        if self.device.type == "cuda":
            torch.cuda.synchronize(self.device)

    @torch.inference_mode()
    def run(self):
        for _ in range(self.warmup):
            self.model(self.batch)
        self._wait()
        begin = time.perf_counter()
        for _ in range(self.iters):
            self.model(self.batch)
        self._wait()
        return Result(time.perf_counter() - begin, self.iters * len(self.batch))


torch.manual_seed(0)
dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
net = nn.Sequential(nn.Conv2d(3, 6, 3), nn.ReLU(), nn.Flatten(), nn.LazyLinear(4)).to(dev).eval()
print(Benchmark(net, torch.randn(4, 3, 8, 8, device=dev), dev).run().per_second > 0)
