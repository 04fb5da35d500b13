import random

import torch
import torch.nn.functional as F
from torch import nn


def mlp(i, o):
    return nn.Sequential(nn.Linear(i, 16), nn.ReLU(), nn.Linear(16, o))


class Replay:
    def __init__(self, obs_dim, act_dim, size=128):
        self.obs = torch.randn(size, obs_dim)
        self.act = torch.rand(size, act_dim) * 2 - 1
        self.rew, self.done = torch.randn(size, 1), torch.zeros(size, 1)
        self.size = size

    def sample(self, n):
        idx = random.sample(range(self.size), n)
        return self.obs[idx], self.act[idx], self.rew[idx], self.done[idx]


class SAC:
    def __init__(self, device):
        self.device = device
        self.actor, self.q1, self.q2 = mlp(3, 2).to(device), mlp(4, 1).to(device), mlp(4, 1).to(device)
        self.log_alpha = torch.zeros(1, requires_grad=True, device=device)
        self.opt_q = torch.optim.Adam([*self.q1.parameters(), *self.q2.parameters()])
        self.opt_pi = torch.optim.Adam(self.actor.parameters())
        self.opt_a = torch.optim.Adam([self.log_alpha])
        self.target_entropy = -1.0

    @property
    def alpha(self):
        return self.log_alpha.exp()

    def act(self, obs):
        mu, log_std = self.actor(obs).chunk(2, -1)
        a = torch.tanh(mu + log_std.clamp(-5, 1).exp() * torch.randn_like(mu))
        return a, -log_std.sum(-1, keepdim=True)

    def update(self, batch):
        obs, act, rew, done = (t.to(self.device) for t in batch)
        q1, q2 = self.q1(torch.cat([obs, act], -1)), self.q2(torch.cat([obs, act], -1))
        q_loss = F.mse_loss(q1, rew) + F.mse_loss(q2, rew)
        self.opt_q.zero_grad()
        q_loss.backward()
        self.opt_q.step()
        a, logp = self.act(obs)
        pi_loss = (self.alpha.detach() * logp - self.q1(torch.cat([obs, a], -1))).mean()
        self.opt_pi.zero_grad()
        pi_loss.backward()
        self.opt_pi.step()
        alpha_loss = -(self.alpha * (logp + self.target_entropy).detach()).mean()
        self.opt_a.zero_grad()
        alpha_loss.backward()
        self.opt_a.step()
        return {
            "q": q_loss.item(),
            "pi": pi_loss.item(),
            "alpha": self.alpha.item(),
        }


if __name__ == "__main__":
    torch.manual_seed(0)
    random.seed(0)
    agent = SAC("cuda" if torch.cuda.is_available() else "cpu")
    buf, log = Replay(3, 1), []
    for _ in range(8):
        log.append(agent.update(buf.sample(16)))
    print(sorted(log[-1]))
