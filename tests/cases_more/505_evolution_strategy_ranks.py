import numpy as np
import torch
from torch import nn
from torch.nn.utils import parameters_to_vector, vector_to_parameters


def centered_ranks(x):
    ranks = np.empty(len(x), dtype=np.float32)
    ranks[np.argsort(x)] = np.arange(len(x), dtype=np.float32)
    return ranks / (len(x) - 1) - 0.5


class ES:
    def __init__(self, net, sigma=0.1, lr=0.05, population=4):
        self.net, self.sigma, self.lr, self.n = net, sigma, lr, population
        self.theta = parameters_to_vector(net.parameters()).detach()

    @torch.no_grad()
    def fitness(self, theta, x, y):
        vector_to_parameters(theta, self.net.parameters())
        return -nn.functional.mse_loss(self.net(x), y)

    def step(self, x, y):
        noise = torch.randn(self.n, self.theta.numel(), device=self.theta.device)
        scores = []
        for eps in noise:
            plus = self.fitness(self.theta + self.sigma * eps, x, y)
            minus = self.fitness(self.theta - self.sigma * eps, x, y)
            scores += [plus.item(), minus.item()]
        ranks = centered_ranks(np.array(scores)).reshape(-1, 2)
        weights = torch.from_numpy(ranks[:, 0] - ranks[:, 1]).to(self.theta.device)
        self.theta = self.theta + self.lr / (self.n * self.sigma) * (weights @ noise)
        return max(scores)


def main(generations=4):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    es = ES(nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1)).to(device))
    x = torch.randn(16, 3, device=device)
    best = [es.step(x, x.sum(1, keepdim=True)) for _ in range(generations)]
    return max(best) <= 0


print(main())
