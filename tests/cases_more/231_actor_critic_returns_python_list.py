import torch
import torch.nn.functional as F
from torch import nn
from torch.distributions import Categorical


class Env:
    def __init__(self, seed=0):
        self.g = torch.Generator().manual_seed(seed)

    def reset(self):
        self.t = 0
        return torch.rand(4, generator=self.g).tolist()

    def step(self, action):
        self.t += 1
        return torch.rand(4, generator=self.g).tolist(), float(action == self.t % 2), self.t >= 6


class Policy(nn.Module):
    def __init__(self):
        super().__init__()
        self.affine, self.action_head, self.value_head = nn.Linear(4, 16), nn.Linear(16, 2), nn.Linear(16, 1)
        self.saved_actions, self.rewards = [], []

    def forward(self, x):
        x = F.relu(self.affine(x))
        return F.softmax(self.action_head(x), dim=-1), self.value_head(x)


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
model = Policy().to(device)
optimizer = torch.optim.Adam(model.parameters(), lr=3e-2)


def select_action(state):
    probs, value = model(torch.tensor(state).to(device))
    m = Categorical(probs)
    action = m.sample()
    model.saved_actions.append((m.log_prob(action), value))
    return action.item()


def finish_episode():
    R, policy_losses, value_losses, returns = 0, [], [], []
    for r in model.rewards[::-1]:
        R = r + 0.99 * R
        returns.insert(0, R)
    returns = torch.tensor(returns, device=device)
    returns = (returns - returns.mean()) / (returns.std() + 1e-6)
    for (log_prob, value), R in zip(model.saved_actions, returns):
        advantage = R - value.item()
        policy_losses.append(-log_prob * advantage)
        value_losses.append(F.smooth_l1_loss(value, R.unsqueeze(0)))
    optimizer.zero_grad()
    loss = torch.stack(policy_losses).sum() + torch.stack(value_losses).sum()
    loss.backward()
    optimizer.step()
    del model.rewards[:]
    del model.saved_actions[:]


def main(episodes=4):
    env = Env()
    for _ in range(episodes):
        state, done = env.reset(), False
        while not done:
            action = select_action(state)
            state, reward, done = env.step(action)
            model.rewards.append(reward)
        finish_episode()
    print("episodes", episodes)


if __name__ == "__main__":
    main()
