import torch
from torch import nn
from torch.distributions import Categorical


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.body = nn.Sequential(nn.Linear(4, 16), nn.Tanh(), nn.Linear(16, 3))

    def forward(self, obs):
        return Categorical(logits=self.body(obs))


class Batched:
    def __init__(self, n, device):
        self.state = torch.zeros(n, 4, device=device)

    def step(self, action):
        self.state = 0.9 * self.state + torch.randn_like(self.state)
        return self.state, -(action.float() - 1).abs()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
policy = Policy().to(device)
opt = torch.optim.Adam(policy.parameters())
env = Batched(8, device)
bonus = 0.01
for update in range(3):
    obs, logps, rewards, entropies = env.state, [], [], []
    for t in range(4):
        dist = policy(obs)
        action = dist.sample()
        logps.append(dist.log_prob(action))
        entropies.append(dist.entropy().mean())
        obs, r = env.step(action)
        rewards.append(r)
    ret = torch.stack(rewards).flip(0).cumsum(0).flip(0)
    ent = torch.stack(entropies).mean()
    if ent < 0.5:
        bonus *= 2
    loss = -(torch.stack(logps) * ret).mean() - bonus * ent
    opt.zero_grad()
    loss.backward()
    opt.step()
