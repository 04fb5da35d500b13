import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


for step in range(100):
    out = model(torch.randn(4, 8, device=device))
    best = out.mean(1).argmax()
    row = out[best.reshape(1)][0]
    some = out[:best]
    picked = out[[0, 2]]
    out.detach()[0, 0] = 1.0
    first = out[0]  # fine: the host knows the index
    half = out[: out.shape[0] // 2]  # fine
