import torch
from torch import nn


class Log:
    def __init__(self):
        self.rows = []

    def emit(self, event):
        match event:
            case ("loss", step, value):
                self.rows.append((step, float(value)))
            case ("grad", step, norm) if norm > 100:
                self.rows.append((step, -1.0))
            case {"lr": lr}:
                self.rows.append((-1, lr))
            case _:
                pass


def grad_norm(model):
    return torch.stack([p.grad.norm() for p in model.parameters()]).norm()


def main(steps=6):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net, log = nn.Linear(6, 2).to(device), Log()
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    for step in range(steps):
        loss = net(torch.randn(8, 6, device=device)).square().mean()
        opt.zero_grad()
        loss.backward()
        log.emit(("loss", step, loss.detach()))
        log.emit(("grad", step, grad_norm(net)))
        opt.step()
        log.emit({"lr": opt.param_groups[0]["lr"]})
    return len(log.rows)


print(main())
