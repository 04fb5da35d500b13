import torch
from torch import nn


def armijo(f, x, g, direction, t=1.0, beta=0.5, c=1e-4):
    fx = f(x)
    slope = (g * direction).sum()

    def sufficient(step):
        return f(x + step * direction) <= fx + c * step * slope

    while not sufficient(t):
        t *= beta
        if t < 1e-6:
            break
    return t


def newton(f, x, iters=5, tol=1e-12):
    for _ in range(iters):
        x = x.detach().requires_grad_(True)
        (g,) = torch.autograd.grad(f(x), x)
        if g.norm() < tol:
            break
        h = torch.autograd.functional.hessian(f, x.detach())
        d = -torch.linalg.solve(h + 1e-3 * torch.eye(len(x), device=x.device), g)
        with torch.no_grad():
            x = x + armijo(f, x, g, d) * d
    return x


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    a = torch.randn(6, 4, device=device)
    y = torch.sign(torch.randn(6, device=device))

    def logistic(w):
        return nn.functional.softplus(-y * (a @ w)).mean() + 0.01 * w.square().sum()

    w = newton(logistic, torch.zeros(4, device=device))
    return w.cpu()


print(main().shape)
