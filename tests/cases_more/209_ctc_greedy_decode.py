import torch
from torch import nn


class GreedyDecoder:
    def __init__(self, labels, blank=0):
        self.labels, self.blank = labels, blank

    def decode(self, probs, sizes):
        _, best = probs.max(dim=2)
        strings = []
        for seq, size in zip(best, sizes):
            chars, prev = [], self.blank
            for t in range(size):
                c = seq[t].item()
                if c != self.blank and c != prev:
                    chars.append(self.labels[c])
                prev = c
            strings.append("".join(chars))
        return strings


class Acoustic(nn.Module):
    def __init__(self, n):
        super().__init__()
        self.rnn, self.fc = nn.GRU(5, 8, batch_first=True), nn.Linear(8, n)

    def forward(self, x):
        return self.fc(self.rnn(x)[0])


def train(epochs=1):
    device = "cuda" if torch.cuda.is_available() else "cpu"
    torch.manual_seed(0)
    labels = "_abcde"
    net, decoder = Acoustic(len(labels)).to(device), GreedyDecoder(labels)
    ctc = nn.CTCLoss(zero_infinity=True)
    opt = torch.optim.SGD(net.parameters(), lr=1e-3)
    texts = []
    for step in range(5):
        x = torch.randn(3, 10, 5, device=device)
        sizes = torch.tensor([10, 9, 8]).to(device)
        y = torch.randint(1, 6, (3, 4), device=device)
        logp = net(x).log_softmax(-1)
        loss = ctc(logp.transpose(0, 1), y, sizes, torch.full((3,), 4, device=device))
        opt.zero_grad()
        loss.backward()
        opt.step()
        texts += decoder.decode(logp.detach(), sizes)
    return texts


print(len(train()))
