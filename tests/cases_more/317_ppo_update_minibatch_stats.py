import numpy as np
import torch
import torch.nn as nn
from torch.distributions.normal import Normal


def layer_init(layer, std=np.sqrt(2), bias_const=0.0):
    torch.nn.init.orthogonal_(layer.weight, std)
    torch.nn.init.constant_(layer.bias, bias_const)
    return layer


class Agent(nn.Module):
    def __init__(self, obs_dim=5, act_dim=2):
        super().__init__()
        self.critic = nn.Sequential(layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, 1), std=1.0))
        self.actor_mean = nn.Sequential(layer_init(nn.Linear(obs_dim, 16)), nn.Tanh(), layer_init(nn.Linear(16, act_dim)))
        self.actor_logstd = nn.Parameter(torch.zeros(1, act_dim))

    def get_action_and_value(self, x, action=None):
        mean = self.actor_mean(x)
        probs = Normal(mean, torch.exp(self.actor_logstd.expand_as(mean)))
        if action is None:
            action = probs.sample()
        return action, probs.log_prob(action).sum(1), probs.entropy().sum(1), self.critic(x)


def main(num_steps=6, num_envs=4, updates=2):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    np.random.seed(1)
    torch.manual_seed(1)
    agent = Agent().to(device)
    optimizer = torch.optim.Adam(agent.parameters(), lr=2.5e-4, eps=1e-5)
    obs = torch.zeros((num_steps, num_envs, 5)).to(device)
    actions = torch.zeros((num_steps, num_envs, 2)).to(device)
    logprobs = torch.zeros((num_steps, num_envs)).to(device)
    rewards = torch.zeros((num_steps, num_envs)).to(device)
    next_obs = torch.Tensor(np.random.randn(num_envs, 5)).to(device)
    for update in range(updates):
        for step in range(0, num_steps):
            obs[step] = next_obs
            with torch.no_grad():
                action, logprob, _, value = agent.get_action_and_value(next_obs)
            actions[step], logprobs[step] = action, logprob
            ob = np.random.randn(num_envs, 5) + action.cpu().numpy().sum()
            rewards[step] = torch.tensor(-np.abs(ob).sum(1)).to(device).view(-1)
            next_obs = torch.Tensor(ob).to(device)
        b_obs, b_logprobs = obs.reshape((-1, 5)), logprobs.reshape(-1)
        b_actions, b_adv = actions.reshape((-1, 2)), rewards.reshape(-1)
        b_inds, clipfracs = np.arange(num_steps * num_envs), []
        for epoch in range(2):
            np.random.shuffle(b_inds)
            for start in range(0, num_steps * num_envs, 12):
                mb_inds = b_inds[start : start + 12]
                _, newlogprob, entropy, _ = agent.get_action_and_value(b_obs[mb_inds], b_actions[mb_inds])
                ratio = (newlogprob - b_logprobs[mb_inds]).exp()
                with torch.no_grad():
                    clipfracs += [((ratio - 1.0).abs() > 0.2).float().mean().item()]
                loss = -(b_adv[mb_inds] * ratio).mean() - 0.01 * entropy.mean()
                optimizer.zero_grad()
                loss.backward()
                nn.utils.clip_grad_norm_(agent.parameters(), 0.5)
                optimizer.step()
    return np.mean(clipfracs)


print(main() >= 0)
