import copy

import numpy as np
import torch
import torch.nn as nn
import torch.nn.functional as F

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")


class ReplayBuffer(object):
    def __init__(self, state_dim, action_dim, max_size=200):
        self.max_size, self.ptr, self.size = max_size, 0, 0
        self.state = np.zeros((max_size, state_dim))
        self.action = np.zeros((max_size, action_dim))
        self.reward = np.zeros((max_size, 1))
        self.device = torch.device("cuda" if torch.cuda.is_available() else "cpu")

    def add(self, state, action, reward):
        self.state[self.ptr], self.action[self.ptr], self.reward[self.ptr] = state, action, reward
        self.ptr = (self.ptr + 1) % self.max_size
        self.size = min(self.size + 1, self.max_size)

    def sample(self, batch_size):
        ind = np.random.randint(0, self.size, size=batch_size)
        return (
            torch.FloatTensor(self.state[ind]).to(self.device),
            torch.FloatTensor(self.action[ind]).to(self.device),
            torch.FloatTensor(self.reward[ind]).to(self.device),
        )


class Actor(nn.Module):
    def __init__(self, state_dim, action_dim, max_action):
        super(Actor, self).__init__()
        self.l1, self.l2, self.max_action = nn.Linear(state_dim, 16), nn.Linear(16, action_dim), max_action

    def forward(self, state):
        return self.max_action * torch.tanh(self.l2(F.relu(self.l1(state))))


class TD3(object):
    def __init__(self, state_dim, action_dim, max_action, policy_freq=2):
        self.actor = Actor(state_dim, action_dim, max_action).to(device)
        self.actor_target = copy.deepcopy(self.actor)
        self.critic = nn.Linear(state_dim + action_dim, 1).to(device)
        self.actor_optimizer = torch.optim.Adam(self.actor.parameters(), lr=3e-4)
        self.critic_optimizer = torch.optim.Adam(self.critic.parameters(), lr=3e-4)
        self.max_action, self.policy_freq, self.total_it = max_action, policy_freq, 0

    def select_action(self, state):
        state = torch.FloatTensor(state.reshape(1, -1)).to(device)
        return self.actor(state).cpu().data.numpy().flatten()

    def train(self, replay_buffer, batch_size=16):
        self.total_it += 1
        state, action, reward = replay_buffer.sample(batch_size)
        with torch.no_grad():
            noise = (torch.randn_like(action) * 0.2).clamp(-0.5, 0.5)
            next_action = (self.actor_target(state) + noise).clamp(-self.max_action, self.max_action)
            target_Q = reward + 0.99 * self.critic(torch.cat([state, next_action], 1))
        critic_loss = F.mse_loss(self.critic(torch.cat([state, action], 1)), target_Q)
        self.critic_optimizer.zero_grad()
        critic_loss.backward()
        self.critic_optimizer.step()
        if self.total_it % self.policy_freq == 0:
            actor_loss = -self.critic(torch.cat([state, self.actor(state)], 1)).mean()
            self.actor_optimizer.zero_grad()
            actor_loss.backward()
            self.actor_optimizer.step()
            for param, target_param in zip(self.actor.parameters(), self.actor_target.parameters()):
                target_param.data.copy_(0.005 * param.data + 0.995 * target_param.data)


if __name__ == "__main__":
    torch.manual_seed(0)
    np.random.seed(0)
    policy, replay = TD3(3, 1, 1.0), ReplayBuffer(3, 1)
    state = np.zeros(3)
    for t in range(14):
        action = (policy.select_action(np.array(state)) + np.random.normal(0, 0.1, size=1)).clip(-1, 1)
        next_state, reward = state * 0.9 + action, -float(np.abs(state).sum())
        replay.add(state, action, reward)
        state = next_state
        if t >= 4:
            policy.train(replay)
    print(replay.size)
