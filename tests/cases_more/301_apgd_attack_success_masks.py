import torch
import torch.nn.functional as F
from torch import nn


class APGD:
    def __init__(self, predict, n_iter=8, eps=0.3, device=None):
        self.model, self.n_iter, self.eps, self.device = predict, n_iter, eps, device

    def normalise(self, x):
        t = x.abs().view(x.shape[0], -1).max(1)[0]
        return x / (t.view(-1, 1) + 1e-12)

    def attack_single_run(self, x, y):
        t = 2 * torch.rand(x.shape).to(self.device).detach() - 1
        x_adv = (x + self.eps * self.normalise(t)).clamp(0.0, 1.0)
        x_best_adv = x_adv.clone()
        acc = self.model(x_adv).detach().argmax(1) == y
        for i in range(self.n_iter):
            x_adv.requires_grad_()
            logits = self.model(x_adv)
            loss = F.cross_entropy(logits, y, reduction="sum")
            grad = torch.autograd.grad(loss, [x_adv])[0].detach()
            with torch.no_grad():
                x_adv = (x_adv.detach() + 0.1 * grad.sign()).clamp(0.0, 1.0)
                x_adv = torch.min(torch.max(x_adv, x - self.eps), x + self.eps)
                pred = self.model(x_adv).max(1)[1] == y
                acc = torch.min(acc, pred)
                ind_pred = (pred == 0).nonzero().squeeze()
                x_best_adv[ind_pred] = x_adv[ind_pred]
            if acc.sum() == 0:
                break
        return x_best_adv, acc

    def perturb(self, x, y, restarts=3):
        adv = x.clone()
        acc = self.model(x).argmax(1) == y
        for counter in range(restarts):
            ind_to_fool = acc.nonzero().flatten()
            if ind_to_fool.numel() != 0:
                adv_curr, acc_curr = self.attack_single_run(x[ind_to_fool].clone(), y[ind_to_fool].clone())
                ind_curr = (acc_curr == 0).nonzero().flatten()
                acc[ind_to_fool[ind_curr]] = False
                adv[ind_to_fool[ind_curr]] = adv_curr[ind_curr].clone()
        return adv, acc.float().mean().item()


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    net = nn.Linear(12, 4).to(device).eval()
    x = torch.rand(16, 12, device=device)
    print(APGD(net, device=device, eps=0.01).perturb(x, net(x).argmax(1))[1])
