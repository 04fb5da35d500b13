# fix: Skip the check of its parameters
# fix: Fill the number on the GPU, skip the check of its parameters
import torch
from torch import nn
from torch.distributions import Categorical, Normal

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 4).to(device)
batches = [torch.randn(16, 8, device=device) for _ in range(40)]
actions = torch.randint(0, 4, (16,), device=device)

total = torch.zeros((), dtype=torch.double, device=device)
with torch.no_grad():
    for x in batches:
        out = model(x)
        policy = Categorical(logits=out)
        mean = out.mean(1)
        value = Normal(mean, 0.5)
        total += policy.log_prob(actions).sum() + policy.entropy().sum()
        total += value.log_prob(out[:, 0]).sum()
print(total.item())
