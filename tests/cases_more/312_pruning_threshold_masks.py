import torch
from torch import nn


class Masking:
    def __init__(self, model, density=0.5):
        self.model, self.density, self.masks, self.report = model, density, {}, []
        for name, p in model.named_parameters():
            if p.dim() > 1:
                self.masks[name] = torch.ones_like(p, requires_grad=False)

    def apply_mask(self):
        for name, p in self.model.named_parameters():
            if name in self.masks:
                p.data = p.data * self.masks[name]

    def truncate(self):
        for name, p in self.model.named_parameters():
            if name not in self.masks:
                continue
            x, _ = torch.sort(torch.abs(p.data.view(-1)))
            k = int((1 - self.density) * x.numel())
            threshold = x[k].item()
            self.masks[name] = (torch.abs(p.data) > threshold).float()

    def step(self, i):
        self.apply_mask()
        self.truncate()
        nonzero = sum(int((m != 0).sum()) for m in self.masks.values())
        self.report.append(nonzero)


def snip_scores(model, loss):
    grads = torch.autograd.grad(loss, list(model.parameters()), retain_graph=True)
    return torch.cat([(g * p).abs().flatten() for g, p in zip(grads, model.parameters())])


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 4)).to(device)
opt = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
masking = Masking(model)
for i in range(6):
    x, y = torch.randn(16, 8, device=device), torch.randint(0, 4, (16,), device=device)
    loss = nn.functional.cross_entropy(model(x), y)
    top = torch.kthvalue(snip_scores(model, loss), 20).values
    opt.zero_grad()
    loss.backward()
    opt.step()
    masking.step(i)
    if top > 1e3:
        print("large scores")
print(masking.report[-1] > 0)
