import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)

from torch.distributions import Categorical, Normal, OneHotCategorical

for step in range(100):
    logits = model(torch.randn(4, 8, device=device))
    policy = Categorical(logits=logits)  # want `Categorical(logits=logits)` checks its parameters
    action = policy.sample()
    loss = -policy.log_prob(action).mean()  # want `policy.log_prob(action)` checks the value
    quiet = Normal(logits, logits.exp(), validate_args=False)  # fine
    number = Normal(logits, 1.0, validate_args=False)  # want `Normal(logits, 1.0, validate_args=False)` copies the number next to the tensor
    both = Normal(logits, scale=0.5)  # want `Normal(logits, scale=0.5)` checks its parameters
    shown = quiet.sample()  # want `quiet.sample()` torch.normal checks its deviation
    drawn = quiet.rsample()  # fine
    hot = OneHotCategorical(logits=logits, validate_args=False)  # want `OneHotCategorical(logits=logits, validate_args=False)` the distribution that it is made of
    loss.backward()
    optimizer.step()
