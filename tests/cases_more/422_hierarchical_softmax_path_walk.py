import torch
import torch.nn.functional as F
from torch import nn


class Tree(nn.Module):
    def __init__(self, depth=3, dim=6):
        super().__init__()
        self.depth = depth
        self.nodes = nn.Parameter(torch.randn(2**depth - 1, dim) * 0.5)

    def route(self, h):
        node = 0
        for _ in range(self.depth):
            go_right = (self.nodes[node] @ h) > 0
            node = 2 * node + (2 if go_right else 1)
        return node - (2**self.depth - 1)

    def loss(self, h, words):
        total = 0
        for word in words.tolist():
            node = word + 2**self.depth - 1
            path = []
            while node > 0:
                parent = (node - 1) // 2
                path.append((parent, 1.0 if node == 2 * parent + 2 else -1.0))
                node = parent
            idx = torch.tensor([p for p, _ in path], device=h.device)
            sign = h.new_tensor([s for _, s in path])
            total = total - F.logsigmoid(sign * (self.nodes[idx] @ h)).sum()
        return total


def main(steps=4):
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    tree, enc = Tree().to(device), nn.Linear(4, 6).to(device)
    opt = torch.optim.Adagrad([*tree.parameters(), *enc.parameters()], lr=0.1)
    leaves = []
    for _ in range(steps):
        h = enc(torch.randn(4, device=device))
        loss = tree.loss(h, torch.randint(0, 8, (2,), device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        leaves.append(tree.route(h.detach()))
    return leaves


print(len(main()))
