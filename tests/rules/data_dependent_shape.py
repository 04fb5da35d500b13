import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.nn import functional as F

for step in range(100):
    out = model(torch.randn(4, 8, device=device))
    mask = out > 0
    ids = out.argmax(1)
    where = torch.nonzero(mask)  # want `torch.nonzero(mask)` the number of hits
    positive = out[mask]  # want `out[mask]` the number of hits decides
    distinct = torch.unique(ids)  # want `torch.unique(ids)` distinct values
    hot = F.one_hot(ids)  # want `F.one_hot(ids)` without num_classes
    known = F.one_hot(ids, num_classes=2)  # fine: of known size
    out[mask] = 0.0  # fine: a number stored through a mask
    out[mask] = out[mask] * 2  # want `out[mask]` the number of hits
    picked = torch.where(mask, out, 0.0)  # fine: of known size
    rows = out[ids]  # fine: an index tensor
    indices = torch.where(mask)  # want `torch.where(mask)` the number of hits
