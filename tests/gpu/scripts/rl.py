"""Actor and critic in an environment on the GPU: rollouts without gradients, then updates."""

import torch
from torch import nn
from torch.distributions import Categorical


class Environment:
    def __init__(self, count):
        self.state = torch.randn(count, 64, device="cuda")
        self.drift = torch.randn(8, 64, device="cuda") * 0.1

    def step(self, action):
        self.state = 0.95 * self.state + self.drift[action]
        reward = -self.state.square().mean(dim=1)
        return self.state, reward


def network(outside):
    return nn.Sequential(
        nn.Linear(64, 512), nn.Tanh(), nn.Linear(512, 512), nn.Tanh(), nn.Linear(512, outside)
    ).cuda()


def rollout(environment, actor, length):
    states, actions, rewards, logs = [], [], [], []
    state = environment.state
    with torch.no_grad():
        for _ in range(length):
            policy = Categorical(logits=actor(state), validate_args=False)
            action = policy.sample()
            states.append(state)
            actions.append(action)
            logs.append(policy.log_prob(action))
            state, reward = environment.step(action)
            rewards.append(reward)
    return torch.stack(states), torch.stack(actions), torch.stack(rewards), torch.stack(logs)


def returns_of(rewards, gamma=0.97):
    total = torch.zeros_like(rewards[0])
    out = torch.empty_like(rewards)
    for step in reversed(range(len(rewards))):
        total = rewards[step] + gamma * total
        out[step] = total
    return out


def main():
    torch.manual_seed(0)
    environment, actor, critic = Environment(4096), network(8), network(1)
    actor_optimizer = torch.optim.Adam(actor.parameters(), lr=3e-4)
    critic_optimizer = torch.optim.Adam(critic.parameters(), lr=1e-3)
    for iteration in range(16):
        states, actions, rewards, old = rollout(environment, actor, 16)
        goals = returns_of(rewards)
        for _ in range(2):
            values = critic(states).squeeze(-1)
            critic_loss = nn.functional.mse_loss(values, goals)
            critic_optimizer.zero_grad()
            critic_loss.backward()
            critic_optimizer.step()
            advantage = (goals - values).detach()
            policy = Categorical(logits=actor(states), validate_args=False)
            ratio = (policy.log_prob(actions) - old).exp()
            clipped = ratio.clamp(0.8, 1.2)
            actor_loss = -torch.minimum(ratio * advantage, clipped * advantage).mean()
            actor_optimizer.zero_grad()
            actor_loss.backward()
            actor_optimizer.step()
        if iteration % 4 == 0:
            print(iteration, rewards.mean().item())


main()
