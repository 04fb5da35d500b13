import torch
from torch import nn


class Overflow(ArithmeticError):
    def __init__(self, value):
        super().__init__(f"loss {value}")


def guarded(loss):
    value = loss.detach()
    if value != value or value.abs() == float("inf"):
        raise Overflow(value.item())
    return loss


class Stepper:
    def __init__(self, net, opt):
        self.net, self.opt, self.skipped = net, opt, 0

    def __call__(self, x):
        try:
            loss = guarded(self.net(x).exp().mean())
            self.opt.zero_grad()
            loss.backward()
            self.opt.step()
        except Overflow:
            self.skipped += 1
        finally:
            self.last = x.shape[0]


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Linear(4, 1).to(device)
    step = Stepper(net, torch.optim.SGD(net.parameters(), 1e-3))
    for i in range(8):
        step(torch.randn(4, 4, device=device) * 10 ** (i % 3))
    return step.skipped


print(main() >= 0)
