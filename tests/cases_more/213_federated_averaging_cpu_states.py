import copy

import torch
from torch import nn


class Client:
    def __init__(self, cid, device):
        self.cid, self.device = cid, device
        g = torch.Generator().manual_seed(cid)
        self.x, self.y = torch.randn(24, 6, generator=g), torch.randint(0, 2, (24,), generator=g)

    def local_update(self, model, epochs=2):
        model.train()
        opt = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(epochs):
            for i in range(0, 24, 8):
                x, y = self.x[i : i + 8].to(self.device), self.y[i : i + 8].to(self.device)
                opt.zero_grad()
                loss = nn.functional.cross_entropy(model(x), y)
                loss.backward()
                opt.step()
        return {k: v.cpu() for k, v in model.state_dict().items()}, loss.item()


def average_weights(states):
    avg = copy.deepcopy(states[0])
    for key in avg:
        for other in states[1:]:
            avg[key] += other[key]
        avg[key] = avg[key] / len(states)
    return avg


def main(rounds=3, n_clients=3):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    glob = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 2)).to(device)
    clients = [Client(i, device) for i in range(n_clients)]
    for _ in range(rounds):
        states, losses = [], []
        for c in clients:
            w, l = c.local_update(copy.deepcopy(glob))
            states.append(w)
            losses.append(l)
        glob.load_state_dict(average_weights(states))
    print(len(losses))


main()
