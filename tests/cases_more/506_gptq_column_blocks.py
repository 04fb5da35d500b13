import torch
from torch import nn


class Quantizer:
    def __init__(self, bits=4):
        self.maxq = 2**bits - 1

    def find_params(self, w):
        lo, hi = w.min(1).values.clamp(max=0), w.max(1).values.clamp(min=0)
        flat = (lo == 0) & (hi == 0)
        lo[flat], hi[flat] = -1, 1
        self.scale = ((hi - lo) / self.maxq).unsqueeze(1)
        self.zero = torch.round(-lo.unsqueeze(1) / self.scale)

    def __call__(self, w):
        q = torch.clamp(torch.round(w / self.scale) + self.zero, 0, self.maxq)
        return self.scale * (q - self.zero)


class GPTQ:
    def __init__(self, layer):
        self.layer, dev = layer, layer.weight.device
        self.columns = layer.weight.shape[1]
        self.H, self.n = torch.zeros(self.columns, self.columns, device=dev), 0

    def add_batch(self, inp):
        self.H += inp.T @ inp
        self.n += inp.shape[0]

    def quantize(self, percdamp=0.01):
        W, H = self.layer.weight.data.clone(), self.H / self.n
        dead = torch.diag(H) == 0
        H[dead, dead] = 1
        W[:, dead] = 0
        damp = percdamp * torch.mean(torch.diag(H))
        diag = torch.arange(self.columns, device=H.device)
        H[diag, diag] += damp
        Hinv = torch.linalg.cholesky(torch.cholesky_inverse(torch.linalg.cholesky(H)), upper=True)
        quantizer, losses = Quantizer(), torch.zeros_like(W)
        quantizer.find_params(W)
        for i in range(self.columns):
            w, d = W[:, i], Hinv[i, i]
            q = quantizer(w.unsqueeze(1)).flatten()
            err = (w - q) / d
            losses[:, i] = err**2 / 2
            W[:, i:] -= err.unsqueeze(1) @ Hinv[i, i:].unsqueeze(0)
            W[:, i] = q
        self.layer.weight.data = W
        return torch.sum(losses).item()


@torch.no_grad()
def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(8, 6), nn.ReLU(), nn.Linear(6, 4), nn.ReLU(), nn.Linear(4, 4)).to(device)
    errors = {}
    x = torch.randn(32, 8, device=device)
    for name, layer in net.named_children():
        if isinstance(layer, nn.Linear):
            gptq = GPTQ(layer)
            for chunk in x.chunk(4):
                gptq.add_batch(chunk)
            errors[name] = gptq.quantize()
        x = layer(x)
    print(len(errors))


main()
