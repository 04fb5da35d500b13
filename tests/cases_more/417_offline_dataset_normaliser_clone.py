import torch
from torch import nn


class RunningNorm:
    def __init__(self, decay=0.9):
        self.low, self.high, self.decay = 0.0, 1.0, decay

    def __call__(self, x):
        low = torch.quantile(x, 0.05).item()
        high = torch.quantile(x, 0.95).item()
        self.low = self.decay * self.low + (1 - self.decay) * low
        self.high = self.decay * self.high + (1 - self.decay) * high
        return (x - self.low) / max(1.0, self.high - self.low)


class WorldModel(nn.Module):
    def __init__(self, obs=5, act=2, hid=12):
        super().__init__()
        self.enc, self.cell = nn.Linear(obs + act, hid), nn.GRUCell(hid, hid)
        self.reward, self.cont = nn.Linear(hid, 1), nn.Linear(hid, 1)

    def imagine(self, obs, policy, horizon):
        h = torch.zeros(obs.shape[0], 12, device=obs.device)
        rewards, conts = [], []
        for _ in range(horizon):
            a = torch.tanh(policy(h))
            h = self.cell(torch.relu(self.enc(torch.cat([obs, a], -1))), h)
            rewards.append(self.reward(h))
            conts.append(self.cont(h).sigmoid())
            if conts[-1].mean() < 1e-3:
                break
        return torch.stack(rewards), torch.cumprod(torch.stack(conts), 0)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    wm, policy, norm = WorldModel().to(device), nn.Linear(12, 2).to(device), RunningNorm()
    opt = torch.optim.Adam([*wm.parameters(), *policy.parameters()])
    for _ in range(5):
        r, c = wm.imagine(torch.randn(6, 5, device=device), policy, 4)
        adv = norm((r * c).detach())
        loss = -(r * c).mean() + adv.mean() * 0
        opt.zero_grad()
        loss.backward()
        opt.step()
    return norm.high


print(main() != 0)
