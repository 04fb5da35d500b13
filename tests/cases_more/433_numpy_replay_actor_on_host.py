import copy
import random

import numpy as np
import torch
from torch import nn


class HostActor:
    def __init__(self, net):
        self.net = copy.deepcopy(net).cpu().eval()

    @torch.no_grad()
    def act(self, obs, eps):
        if random.random() < eps:
            return random.randrange(2)
        q = self.net(torch.from_numpy(obs))
        return int(q.argmax())


class CartLike:
    def __init__(self, rng):
        self.rng = rng

    def reset(self):
        self.s = self.rng.normal(size=4).astype(np.float32)
        return self.s

    def step(self, a):
        self.s = (0.9 * self.s + (0.1 if a else -0.1)).astype(np.float32)
        done = bool(np.abs(self.s).max() > 2.5)
        return self.s, float(-np.abs(self.s).sum()), done


def main(steps=12):
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    q = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2))
    actor = HostActor(q)
    q.to(device)
    memory = torch.randn(64, 4, device=device)
    opt = torch.optim.Adam(q.parameters())
    env = CartLike(np.random.default_rng(0))
    obs, rewards = env.reset(), []
    for _ in range(steps):
        obs, r, done = env.step(actor.act(obs, 0.2))
        rewards.append(r)
        if done:
            obs = env.reset()
        pick = torch.randint(0, 64, (16,), device=device)
        loss = q(memory[pick]).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    print(np.mean(rewards) < 0)


main()
