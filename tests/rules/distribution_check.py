import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.distributions import Categorical, Normal

for step in range(100):
    logits = model(torch.randn(4, 8, device=device))
    policy = Categorical(logits=logits)  # want `Categorical(logits=logits)` checks its parameters
    action = policy.sample()
    loss = -policy.log_prob(action).mean()  # want `policy.log_prob(action)` checks the value
    quiet = Normal(logits, 1.0, validate_args=False)  # fine
    loss.backward()
    optimizer.step()
