import statistics
from dataclasses import dataclass, field

import torch
from torch import nn


@dataclass
class Alarm:
    index: int
    score: float


@dataclass
class Detector:
    model: nn.Module
    k: float = 2.0
    scores: list = field(default_factory=list)
    alarms: list = field(default_factory=list)

    def residual(self, window):
        with torch.no_grad():
            return (self.model(window[:-1].T).T - window[-1:]).abs().mean()

    def observe(self, i, window):
        r = self.residual(window)
        if len(self.scores) > 3:
            limit = statistics.mean(self.scores) + self.k * statistics.pstdev(self.scores)
            if r > limit:
                self.alarms.append(Alarm(i, r.item()))
        self.scores.append(float(r))


def windows(series, n):
    for i in range(len(series) - n):
        yield i, series[i : i + n]


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    series = torch.sin(torch.arange(40.0) / 4).unsqueeze(1).repeat(1, 2)
    series[30] = 5.0
    series = series.to(device)
    detector = Detector(nn.Linear(5, 1).to(device).eval())
    for i, w in windows(series, 6):
        detector.observe(i, w)
    return len(detector.scores)


print(main())
