import torch
from torch import nn

FROZEN = {"stem.weight", "stem.bias"}


class Cache(dict):
    def get_or(self, key, make):
        if key not in self:
            self[key] = make()
        return self[key]


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.stem, self.head = nn.Linear(4, 4), nn.Linear(4, 2)
        self.cache = Cache()

    def forward(self, x, mask=None):
        pos = self.cache.get_or((x.shape[0], x.device), lambda: torch.arange(x.shape[0], device=x.device))
        h = self.stem(x) + pos[:, None]
        if mask is not None:
            h = h * mask
        return self.head(h)


def main():
    device = "cuda" if torch.cuda.is_available() else "cpu"
    net = Net().to(device)
    for name, p in net.named_parameters():
        p.requires_grad = name not in FROZEN
    opt = torch.optim.SGD([p for p in net.parameters() if p.requires_grad], lr=0.1)
    losses = []
    for i in range(5):
        x = torch.randn(6, 4, device=device)
        loss = net(x, mask=None if i % 2 else torch.ones(6, 1, device=device)).abs().mean()
        opt.zero_grad()
        loss.backward()
        grads = [p.grad for p in net.parameters() if p.grad is not None]
        if grads and losses is not None and x.is_floating_point():
            opt.step()
        losses.append(loss.detach())
        losses = losses[-3:] or [loss]
    print(len(losses))


main()
