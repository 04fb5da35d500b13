import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.distributions import Categorical, Normal, OneHotCategorical

for step in range(100):
    logits = model(torch.randn(4, 8, device=device))
    policy = Categorical(logits=logits, validate_args=False)
    action = policy.sample()
    loss = -policy.log_prob(action).mean()
    quiet = Normal(logits, logits.exp(), validate_args=False)  # fine
    number = Normal(logits, torch.full_like(logits, 1.0), validate_args=False)
    both = Normal(logits, scale=torch.full_like(logits, 0.5), validate_args=False)
    shown = quiet.sample()
    drawn = quiet.rsample()  # fine
    hot = OneHotCategorical(logits=logits, validate_args=False)
    loss.backward()
    optimizer.step()
