import torch
from torch import nn


class PrivacyAccountant:
    def __init__(self, noise):
        self.noise, self.steps = noise, 0

    def step(self):
        self.steps += 1

    @property
    def epsilon(self):
        return (2 * self.steps) ** 0.5 / self.noise


class DPTrainer:
    def __init__(self, net, device, clip=1.0, noise=1.1):
        self.net, self.device, self.clip, self.noise = net.to(device), device, clip, noise
        self.opt = torch.optim.SGD(net.parameters(), lr=0.1)
        self.accountant, self.clipped = PrivacyAccountant(noise), 0

    def step(self, x, y):
        total = [torch.zeros_like(p) for p in self.net.parameters()]
        for xi, yi in zip(x, y):
            self.net.zero_grad()
            nn.functional.cross_entropy(self.net(xi[None]), yi[None]).backward()
            norm = torch.sqrt(sum(p.grad.pow(2).sum() for p in self.net.parameters())).item()
            scale = min(1.0, self.clip / (norm + 1e-6))
            self.clipped += scale < 1
            for t, p in zip(total, self.net.parameters()):
                t.add_(p.grad, alpha=scale)
        for t, p in zip(total, self.net.parameters()):
            noise = torch.normal(0.0, self.noise * self.clip, t.shape)
            p.grad = (t + noise.to(self.device)) / len(x)
        self.opt.step()
        self.accountant.step()


def main(steps=3):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    trainer = DPTrainer(nn.Linear(5, 2), device)
    for _ in range(steps):
        trainer.step(torch.randn(4, 5, device=device), torch.randint(0, 2, (4,), device=device))
    return trainer.accountant.epsilon


print(main() > 0)
