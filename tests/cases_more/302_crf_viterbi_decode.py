from typing import List, Optional

import torch
from torch import nn


class CRF(nn.Module):
    def __init__(self, num_tags: int):
        super().__init__()
        self.num_tags = num_tags
        self.start_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.end_transitions = nn.Parameter(torch.empty(num_tags).uniform_(-0.1, 0.1))
        self.transitions = nn.Parameter(torch.empty(num_tags, num_tags).uniform_(-0.1, 0.1))

    def _validate(self, emissions: torch.Tensor, mask: torch.Tensor) -> None:
        if emissions.dim() != 3:
            raise ValueError("emissions must have dimension of 3")
        if not mask[0].all():
            raise ValueError("mask of the first timestep must all be on")

    def forward(self, emissions: torch.Tensor, tags: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        self._validate(emissions, mask)
        return -(self._score(emissions, tags, mask.float()) - self._normalizer(emissions, mask)).mean()

    def _score(self, emissions, tags, mask):
        idx = torch.arange(tags.shape[1], device=tags.device)
        score = self.start_transitions[tags[0]] + emissions[0, idx, tags[0]]
        for i in range(1, tags.shape[0]):
            score = score + self.transitions[tags[i - 1], tags[i]] * mask[i]
            score = score + emissions[i, idx, tags[i]] * mask[i]
        return score

    def _normalizer(self, emissions, mask):
        score = self.start_transitions + emissions[0]
        for i in range(1, emissions.size(0)):
            nxt = torch.logsumexp(score.unsqueeze(2) + self.transitions + emissions[i].unsqueeze(1), dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt, score)
        return torch.logsumexp(score + self.end_transitions, dim=1)

    def decode(self, emissions: torch.Tensor, mask: Optional[torch.Tensor] = None) -> List[List[int]]:
        if mask is None:
            mask = emissions.new_ones(emissions.shape[:2], dtype=torch.bool)
        score, history = self.start_transitions + emissions[0], []
        for i in range(1, emissions.size(0)):
            nxt, indices = (score.unsqueeze(2) + self.transitions).max(dim=1)
            score = torch.where(mask[i].unsqueeze(1), nxt + emissions[i].unsqueeze(1).squeeze(1), score)
            history.append(indices)
        score = score + self.end_transitions
        seq_ends = mask.long().sum(dim=0) - 1
        best = []
        for idx in range(emissions.size(1)):
            _, best_last_tag = score[idx].max(dim=0)
            tags = [best_last_tag.item()]
            for hist in reversed(history[: seq_ends[idx]]):
                best_last_tag = hist[idx][tags[-1]]
                tags.append(best_last_tag.item())
            tags.reverse()
            best.append(tags)
        return best


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    encoder, crf = nn.LSTM(6, 5).to(device), CRF(5).to(device)
    opt = torch.optim.Adam([*encoder.parameters(), *crf.parameters()], lr=1e-2)
    n = 0
    for step in range(4):
        x = torch.randn(7, 3, 6, device=device)
        tags = torch.randint(0, 5, (7, 3), device=device)
        mask = torch.ones(7, 3, dtype=torch.bool, device=device)
        emissions, _ = encoder(x)
        loss = crf(emissions, tags, mask)
        opt.zero_grad()
        loss.backward()
        opt.step()
        n += len(crf.decode(emissions.detach(), mask))
    return n


print(main())
