import queue

import torch
from torch import nn


def make_net():
    return nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))


class Worker:
    def __init__(self, wid):
        self.net, self.g = make_net(), torch.Generator().manual_seed(wid)

    def load(self, weights):
        self.net.load_state_dict(weights)

    @torch.no_grad()
    def rollout(self, n):
        obs, act = [], []
        for _ in range(n):
            o = torch.randn(4, generator=self.g)
            a = self.net(o).argmax().item()
            obs.append(o)
            act.append(a)
        return torch.stack(obs), torch.tensor(act)


class Learner:
    def __init__(self, device):
        self.device, self.net = device, make_net().to(device)
        self.opt = torch.optim.RMSprop(self.net.parameters(), lr=1e-3)
        self.inbox = queue.Queue()
        self.version = 0

    def publish(self):
        return {k: v.detach().cpu() for k, v in self.net.state_dict().items()}

    def learn(self):
        obs, act = self.inbox.get()
        obs = obs.to(self.device)
        act = act.to(self.device)
        loss = nn.functional.cross_entropy(self.net(obs), act)
        self.opt.zero_grad()
        loss.backward()
        self.opt.step()
        self.version += 1
        return loss.detach()


def main(updates=5):
    torch.manual_seed(0)
    learner = Learner(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    workers = [Worker(i) for i in range(2)]
    losses = []
    for update in range(updates):
        weights = learner.publish()
        for w in workers:
            w.load(weights)
            learner.inbox.put(w.rollout(6))
        while not learner.inbox.empty():
            losses.append(learner.learn())
    return torch.stack(losses).mean().item()


print(main() > 0)
