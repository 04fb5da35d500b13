import torch
from torch import nn


class VecEnv:
    def __init__(self, n, device):
        self.state, self.device = torch.zeros(n, 3, device=device), device

    def step(self, action):
        self.state = 0.9 * self.state + action
        reward = -self.state.norm(dim=1)
        done = (self.state.norm(dim=1) > 3).float()
        self.state = self.state * (1 - done).unsqueeze(1)
        return self.state, reward, done


def gae(rewards, values, dones, last, gamma=0.99, lam=0.95):
    adv = torch.zeros_like(rewards)
    acc = torch.zeros_like(last)
    for t in reversed(range(rewards.shape[0])):
        nxt = last if t == rewards.shape[0] - 1 else values[t + 1]
        delta = rewards[t] + gamma * nxt * (1 - dones[t]) - values[t]
        acc = delta + gamma * lam * (1 - dones[t]) * acc
        adv[t] = acc
    return adv


def main(iters=3, horizon=6, n=8):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    env = VecEnv(n, device)
    pi, vf = nn.Linear(3, 3).to(device), nn.Linear(3, 1).to(device)
    opt = torch.optim.Adam([*pi.parameters(), *vf.parameters()], lr=3e-4)
    obs = env.state
    for _ in range(iters):
        rew, val, dn, seen = [], [], [], []
        for _ in range(horizon):
            with torch.no_grad():
                act = pi(obs) + 0.1 * torch.randn_like(obs)
                val.append(vf(obs).squeeze(1))
            seen.append(obs)
            obs, r, d = env.step(act)
            rew.append(r)
            dn.append(d)
        with torch.no_grad():
            adv = gae(torch.stack(rew), torch.stack(val), torch.stack(dn), vf(obs).squeeze(1))
        loss = (vf(torch.stack(seen)).squeeze(-1) - adv).square().mean() + pi(torch.stack(seen)).square().mean()
        opt.zero_grad()
        loss.backward()
        opt.step()
    return adv.shape


print(main())
