import random

import torch
from torch import nn

device = "cuda" if torch.cuda.is_available() else "cpu"


class SumTree:
    def __init__(self, capacity):
        self.capacity = capacity
        self.nodes = [0.0] * (2 * capacity)

    def set(self, index, value):
        index += self.capacity
        self.nodes[index] = value
        while index > 1:
            index //= 2
            self.nodes[index] = self.nodes[2 * index] + self.nodes[2 * index + 1]

    def find(self, mass):
        index = 1
        while index < self.capacity:
            index *= 2
            if mass > self.nodes[index]:
                mass -= self.nodes[index]
                index += 1
        return index - self.capacity


class Replay:
    def __init__(self, capacity=32):
        self.tree = SumTree(capacity)
        self.states = torch.randn(capacity, 6, device=device)
        self.targets = torch.randn(capacity, 1, device=device)
        for i in range(capacity):
            self.tree.set(i, 1.0)

    def sample(self, n):
        total = self.tree.nodes[1]
        picks = [self.tree.find(random.random() * total) for _ in range(n)]
        idx = torch.tensor(picks, device=device)
        return picks, self.states[idx], self.targets[idx]

    def update(self, picks, errors):
        for i, err in zip(picks, errors):
            self.tree.set(i, float(err) ** 0.6)


q = nn.Linear(6, 1).to(device)
opt = torch.optim.Adam(q.parameters())
replay = Replay()
for step in range(6):
    picks, s, y = replay.sample(4)
    td = (q(s) - y).squeeze(1)
    td.pow(2).mean().backward()
    opt.step()
    opt.zero_grad(set_to_none=True)
    replay.update(picks, td.detach().abs() + 1e-3)
