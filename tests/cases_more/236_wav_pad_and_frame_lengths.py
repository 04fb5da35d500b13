import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence


def make_pad_mask(lengths, max_len=0):
    max_len = max_len if max_len > 0 else lengths.max().item()
    seq = torch.arange(0, max_len, dtype=torch.int64, device=lengths.device)
    return seq.unsqueeze(0) >= lengths.unsqueeze(-1)


class Subsampling(nn.Module):
    def __init__(self, i, o):
        super().__init__()
        self.conv = nn.Conv1d(i, o, 3, stride=2, padding=1)

    def forward(self, x, lengths):
        return self.conv(x.transpose(1, 2)).transpose(1, 2), (lengths + 1) // 2


class Encoder(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = Subsampling(6, 8)
        self.rnn = nn.LSTM(8, 8, batch_first=True)

    def forward(self, xs, lengths):
        xs, lengths = self.embed(xs, lengths)
        mask = make_pad_mask(lengths, xs.shape[1])
        xs = xs.masked_fill(mask.unsqueeze(-1), 0.0)
        packed = pack_padded_sequence(xs, lengths.cpu(), batch_first=True, enforce_sorted=False)
        out, _ = self.rnn(packed)
        out, _ = pad_packed_sequence(out, batch_first=True)
        return out, lengths


def sequence_loss(out, lengths):
    keep = ~make_pad_mask(lengths)
    return out.square().mean(-1)[keep].mean()


device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
torch.manual_seed(0)
enc = Encoder().to(device)
opt = torch.optim.Adam(enc.parameters())
for _ in range(5):
    lengths = torch.randint(4, 13, (3,))
    lengths[0] = 12
    loss = sequence_loss(*enc(torch.randn(3, 12, 6, device=device), lengths.to(device)))
    opt.zero_grad()
    loss.backward()
    opt.step()
print("ok")
