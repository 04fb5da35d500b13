import itertools

import torch
from torch import nn


def si_snr(est, ref, eps=1e-8):
    est, ref = est - est.mean(-1, keepdim=True), ref - ref.mean(-1, keepdim=True)
    proj = (est * ref).sum(-1, keepdim=True) * ref / (ref.pow(2).sum(-1, keepdim=True) + eps)
    noise = est - proj
    return 10 * torch.log10(proj.pow(2).sum(-1) / (noise.pow(2).sum(-1) + eps) + eps)


class PIT(nn.Module):
    def __init__(self, sources=2):
        super().__init__()
        self.perms = list(itertools.permutations(range(sources)))

    def forward(self, est, ref):
        scores = []
        for perm in self.perms:
            scores.append(torch.stack([si_snr(est[:, s], ref[:, t]) for s, t in enumerate(perm)]).mean(0))
        scores = torch.stack(scores, 1)
        best, index = scores.max(1)
        order = [self.perms[i] for i in index]
        aligned = torch.stack([est[b, list(p)] for b, p in enumerate(order)])
        return -best.mean(), aligned


class Separator(nn.Module):
    def __init__(self):
        super().__init__()
        self.net = nn.Conv1d(1, 2, 9, padding=4)

    def forward(self, mix):
        return self.net(mix.unsqueeze(1))


def main(steps=5):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net, pit = Separator().to(device), PIT()
    opt = torch.optim.Adam(net.parameters(), 1e-3)
    history = []
    for step in range(steps):
        ref = torch.randn(3, 2, 64, device=device)
        loss, aligned = pit(net(ref.sum(1)), ref)
        opt.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(net.parameters(), 5.0)
        opt.step()
        history.append(f"{step:03d} {-loss.item():.2f} dB")
    return len(history)


print(main())
