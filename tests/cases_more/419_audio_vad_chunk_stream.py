import torch
from torch import nn


class VAD(nn.Module):
    def __init__(self):
        super().__init__()
        self.rnn, self.out = nn.GRU(16, 12, batch_first=True), nn.Linear(12, 1)

    def forward(self, chunk, state=None):
        y, state = self.rnn(chunk, state)
        return self.out(y[:, -1]).sigmoid(), state


class Stream:
    def __init__(self, model, device, on=0.5, off=0.35):
        self.model, self.device, self.on, self.off = model, device, on, off
        self.state, self.speaking, self.segments, self.start = None, False, [], 0

    def feed(self, samples, t):
        chunk = torch.as_tensor(samples).view(1, -1, 16).to(self.device)
        with torch.inference_mode():
            prob, self.state = self.model(chunk, self.state)
        p = prob.squeeze()
        if not self.speaking and p >= self.on:
            self.speaking, self.start = True, t
        elif self.speaking and p < self.off:
            self.speaking = False
            self.segments.append((self.start, t))
        return round(p.item(), 2)


def microphone(n):
    g = torch.Generator().manual_seed(0)
    for _ in range(n):
        yield torch.randn(64, generator=g).tolist()


def main():
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    stream = Stream(VAD().to(device).eval(), device)
    probs = [stream.feed(s, t) for t, s in enumerate(microphone(8))]
    return len(probs)


print(main())
