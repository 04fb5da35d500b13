import random

import torch
from torch import nn


class Endless:
    def __init__(self, rows, device, size=4):
        self.rows, self.device, self.size = rows, device, size

    def __iter__(self):
        random.shuffle(self.rows)
        self.at = 0
        return self

    def __next__(self):
        if self.at + self.size > len(self.rows):
            random.shuffle(self.rows)
            self.at = 0
        chunk = self.rows[self.at : self.at + self.size]
        self.at += self.size
        xs, ys = zip(*chunk)
        return torch.tensor(xs, device=self.device), torch.tensor(ys).to(self.device)


def fit(net, batches, steps):
    opt = torch.optim.SGD(net.parameters(), lr=0.01)
    it = iter(batches)
    skipped = 0
    for _ in range(steps):
        x, y = next(it)
        loss = nn.functional.mse_loss(net(x).squeeze(-1), y)
        if not torch.isfinite(loss):
            skipped += 1
            continue
        opt.zero_grad()
        loss.backward()
        opt.step()
    return skipped


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    rows = [([random.random() for _ in range(3)], random.random()) for _ in range(12)]
    print(fit(nn.Linear(3, 1).to(device), Endless(rows, device), 7))
