from dataclasses import dataclass
from typing import Any, Mapping

import numpy as np
import torch
from torch import nn


def send_to_device(data: Any, device):
    if isinstance(data, Mapping):
        return type(data)({k: send_to_device(v, device) for k, v in data.items()})
    if isinstance(data, (list, tuple)):
        return type(data)(send_to_device(v, device) for v in data)
    if hasattr(data, "to"):
        return data.to(device)
    return data


@dataclass
class Output:
    logits: torch.Tensor
    loss: torch.Tensor = None


class Classifier(nn.Module):
    def __init__(self, vocab=30, labels=3):
        super().__init__()
        self.emb, self.fc = nn.Embedding(vocab, 8), nn.Linear(8, labels)

    def forward(self, input_ids, attention_mask, labels=None):
        h = self.emb(input_ids) * attention_mask.unsqueeze(-1)
        logits = self.fc(h.sum(1) / attention_mask.sum(1, keepdim=True))
        loss = None if labels is None else nn.functional.cross_entropy(logits, labels)
        return Output(logits, loss)


@dataclass
class Collator:
    pad: int = 0

    def __call__(self, rows):
        width = max(len(r["input_ids"]) for r in rows)
        ids = [r["input_ids"] + [self.pad] * (width - len(r["input_ids"])) for r in rows]
        mask = [[1] * len(r["input_ids"]) + [0] * (width - len(r["input_ids"])) for r in rows]
        return {
            "input_ids": torch.tensor(ids),
            "attention_mask": torch.tensor(mask),
            "labels": torch.tensor([r["label"] for r in rows]),
        }


def evaluate(model, loader, device):
    preds, out_label_ids, eval_loss, nb = None, None, 0.0, 0
    model.eval()
    for batch in loader:
        batch = send_to_device(batch, device)
        with torch.no_grad():
            outputs = model(**batch)
            eval_loss += outputs.loss.mean().item()
        nb += 1
        if preds is None:
            preds = outputs.logits.detach().cpu().numpy()
            out_label_ids = batch["labels"].detach().cpu().numpy()
        else:
            preds = np.append(preds, outputs.logits.detach().cpu().numpy(), axis=0)
            out_label_ids = np.append(out_label_ids, batch["labels"].detach().cpu().numpy(), axis=0)
    return eval_loss / nb, (np.argmax(preds, axis=1) == out_label_ids).mean()


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    rows = [{"input_ids": list(range(1, 3 + i % 5)), "label": i % 3} for i in range(24)]
    loader = torch.utils.data.DataLoader(rows, batch_size=4, collate_fn=Collator())
    model = Classifier().to(device)
    opt = torch.optim.AdamW(model.parameters(), lr=1e-2)
    for batch in loader:
        loss = model(**send_to_device(batch, device)).loss
        loss.backward()
        opt.step()
        opt.zero_grad()
    print(evaluate(model, loader, device)[1] >= 0)


if __name__ == "__main__":
    main()
