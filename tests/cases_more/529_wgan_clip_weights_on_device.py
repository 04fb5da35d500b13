import torch
from torch import nn


def clip_weights(model, c):
    with torch.no_grad():
        for p in model.parameters():
            p.clamp_(-c, c)


def smooth_labels(n, device, low=0.8):
    return low + (1 - low) * torch.rand(n, 1, device=device)


class Game:
    def __init__(self, device):
        self.device = device
        self.g = nn.Sequential(nn.Linear(3, 16), nn.ReLU(), nn.Linear(16, 2)).to(device)
        self.d = nn.Sequential(nn.Linear(2, 16), nn.LeakyReLU(0.2), nn.Linear(16, 1)).to(device)
        self.og, self.od = torch.optim.RMSprop(self.g.parameters(), 1e-3), torch.optim.RMSprop(self.d.parameters(), 1e-3)

    def critic_step(self, real):
        with torch.no_grad():
            fake = self.g(torch.randn(len(real), 3, device=self.device))
        loss = self.d(fake).mean() - (self.d(real) * smooth_labels(len(real), self.device)).mean()
        self.od.zero_grad()
        loss.backward()
        self.od.step()
        clip_weights(self.d, 0.05)
        return loss.detach()

    def generator_step(self, n):
        loss = -self.d(self.g(torch.randn(n, 3, device=self.device))).mean()
        self.og.zero_grad()
        loss.backward()
        self.og.step()
        return loss.detach()


def main(iters=6, n_critic=3):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    game, curve = Game(device), []
    for it in range(iters):
        for _ in range(n_critic):
            d = game.critic_step(torch.randn(16, 2, device=device))
        curve.append(torch.stack([d, game.generator_step(16)]))
    table = torch.stack(curve).cpu()
    best = int(table[:, 0].argmin())
    print(table.shape, 0 <= best < iters, [round(v, 1) for v in table[best].tolist()] != [])


main()
