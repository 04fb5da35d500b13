import math

import torch
from torch import nn


class Node:
    def __init__(self, prior):
        self.prior, self.visits, self.total, self.children = prior, 0, 0.0, {}

    @property
    def q(self):
        return self.total / self.visits if self.visits else 0.0

    def select(self, c=1.5):
        return max(self.children.items(), key=lambda kv: kv[1].q + c * kv[1].prior * math.sqrt(self.visits + 1) / (1 + kv[1].visits))


class Net(nn.Module):
    def __init__(self, actions=4):
        super().__init__()
        self.body, self.p, self.v = nn.Linear(6, 16), nn.Linear(16, actions), nn.Linear(16, 1)

    def forward(self, s):
        h = torch.relu(self.body(s))
        return self.p(h).softmax(-1), self.v(h).tanh()


class MCTS:
    def __init__(self, net, device, sims=8):
        self.net, self.device, self.sims = net, device, sims

    @torch.no_grad()
    def evaluate(self, state):
        p, v = self.net(torch.as_tensor(state, dtype=torch.float32, device=self.device).unsqueeze(0))
        return p.squeeze(0).cpu().numpy(), v.item()

    def run(self, state):
        root = Node(1.0)
        for _ in range(self.sims):
            node, path, s = root, [root], list(state)
            while node.children:
                action, node = node.select()
                s[action] += 1.0
                path.append(node)
            priors, value = self.evaluate(s)
            node.children = {a: Node(float(p)) for a, p in enumerate(priors)}
            for n in path:
                n.visits += 1
                n.total += value
        return max(root.children, key=lambda a: root.children[a].visits)


torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
mcts = MCTS(Net().to(device).eval(), device)
print([mcts.run([0.0] * 6) in range(4) for _ in range(2)])
