import contextlib

import torch
from torch import nn


class EMA:
    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = [p.detach().clone() for p in model.parameters()]

    @torch.no_grad()
    def update(self, model):
        torch._foreach_mul_(self.shadow, self.decay)
        torch._foreach_add_(self.shadow, [p.detach() for p in model.parameters()], alpha=1 - self.decay)

    def copy_to(self, model):
        for s, p in zip(self.shadow, model.parameters()):
            p.data.copy_(s)


def main(steps=12, accum=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.TransformerEncoderLayer(16, 2, 32, batch_first=True).to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-3)
    ema = EMA(model, 0.99)
    amp = torch.autocast(device.type, dtype=torch.bfloat16) if device.type == "cuda" else contextlib.nullcontext()
    norms = []
    for step in range(steps):
        x = torch.randn(2, 5, 16, device=device)
        with amp:
            loss = (model(x) - x).square().mean() / accum
        loss.backward()
        if (step + 1) % accum == 0:
            norms.append(nn.utils.clip_grad_norm_(model.parameters(), 1.0))
            opt.step()
            opt.zero_grad(set_to_none=True)
            ema.update(model)
    ema.copy_to(model)
    print(torch.stack(norms).max().item() > 0)


if __name__ == "__main__":
    main()
