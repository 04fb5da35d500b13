import torch
from torch import nn
from torch.distributions import Normal


class Agent(nn.Module):
    def __init__(self):
        super().__init__()
        self.mu, self.v = nn.Linear(5, 2), nn.Linear(5, 1)
        self.log_std = nn.Parameter(torch.zeros(2))

    def evaluate(self, obs, act):
        dist = Normal(self.mu(obs), self.log_std.exp(), validate_args=False)
        return dist.log_prob(act).sum(-1), self.v(obs).squeeze(-1)


def explained_variance(pred, true):
    var = true.var()
    return float("nan") if var == 0 else (1 - (true - pred).var() / var).item()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
agent = Agent().to(device)
opt = torch.optim.Adam(agent.parameters(), lr=3e-4)
stats = {"ev": [], "clipfrac": []}
for update in range(3):
    obs, act = torch.randn(16, 5, device=device), torch.randn(16, 2, device=device)
    adv, ret = torch.randn(16, device=device), torch.randn(16, device=device)
    with torch.no_grad():
        old, values = agent.evaluate(obs, act)
    clipfracs = []
    for epoch in range(2):
        order = torch.randperm(16, device=device)
        for mb in order.split(8):
            logp, v = agent.evaluate(obs[mb], act[mb])
            ratio = (logp - old[mb]).exp()
            clipfracs += [((ratio - 1).abs() > 0.2).float().mean().item()]
            loss = -torch.min(ratio * adv[mb], ratio.clamp(0.8, 1.2) * adv[mb]).mean() + (v - ret[mb]).pow(2).mean()
            opt.zero_grad()
            loss.backward()
            opt.step()
        with torch.no_grad():
            kl = (old - agent.evaluate(obs, act)[0]).mean()
        if kl > 0.5:
            break
    stats["ev"].append(explained_variance(values, ret))
    stats["clipfrac"].append(sum(clipfracs) / len(clipfracs))
