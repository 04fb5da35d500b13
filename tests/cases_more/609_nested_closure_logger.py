import torch
from torch import nn


def make_logger(every):
    rows = []
    count = 0

    def log(**values):
        nonlocal count
        count += 1
        row = {name: (v.item() if torch.is_tensor(v) else v) for name, v in values.items()}
        if count % every == 0:
            rows.append(row)

    return log, rows


def build(dev):
    enc = nn.Sequential(nn.Linear(12, 6), nn.ReLU()).to(dev)
    dec = nn.Linear(6, 12).to(dev)
    return enc, dec


def main():
    dev = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    enc, dec = build(dev)
    opt = torch.optim.Adam([*enc.parameters(), *dec.parameters()], lr=1e-3)
    log, rows = make_logger(every=2)
    for step in range(6):
        x = torch.rand(8, 12, device=dev)
        z = enc(x)
        rec = (dec(z) - x).pow(2).mean()
        sparse = z.abs().mean()
        opt.zero_grad(set_to_none=True)
        (rec + 0.01 * sparse).backward()
        opt.step()
        log(step=step, rec=rec.detach(), sparse=sparse.detach())
    print(len(rows))


main()
