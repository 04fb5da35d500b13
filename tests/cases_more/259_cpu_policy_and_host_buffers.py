import random

import torch
from torch import nn


class HostReplay:
    def __init__(self, size=64):
        self.obs, self.prio = torch.zeros(size, 4), torch.zeros(size)
        self.filled = torch.zeros(size, dtype=torch.bool)
        self.at = 0

    def push(self, obs):
        self.obs[self.at], self.prio[self.at], self.filled[self.at] = obs, 1.0, True
        self.at = (self.at + 1) % len(self.obs)

    def sample(self, n):
        valid = self.filled.nonzero().flatten()
        if valid.numel() < n:
            return None
        pick = valid[torch.multinomial(self.prio[valid], n)]
        best = self.prio[pick].max().item()
        return self.obs[pick], best


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    random.seed(0)
    torch.manual_seed(0)
    buf = HostReplay()
    learner = nn.Linear(4, 1).to(device)
    opt = torch.optim.Adam(learner.parameters())
    noise = torch.randn(8, 4, device=device)
    for step in range(20):
        buf.push(torch.rand(4) * random.random())
        got = buf.sample(8)
        if got is None:
            continue
        _, best = got
        loss = (learner(noise) * best).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(int(buf.filled.sum()))


main()
