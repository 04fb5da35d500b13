import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from tqdm import tqdm

bar = tqdm(range(100))
for step in bar:
    loss = model(torch.randn(4, 8, device=device)).mean()
    loss.backward()
    optimizer.step()
    print(loss)  # want `loss` waits for the GPU
    text = f"loss {loss:.3f} of step {step}"  # want `loss` waits
    text = "loss %.3f" % loss  # want `loss` waits
    text = "loss {:.3f}".format(loss)  # want `loss` waits
    text = str(loss)  # want `str(loss)` waits
    bar.set_postfix(loss=loss.detach())  # want `bar.set_postfix(loss=loss.detach())` waits
    print(loss.shape, f"{step}")  # fine: the host knows
    if step % 50 == 0:
        print(loss)  # want `loss` on the steps that line
