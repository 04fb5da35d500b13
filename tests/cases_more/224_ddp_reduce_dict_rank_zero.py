import math
import sys

import torch
from torch import nn


def is_dist():
    return torch.distributed.is_available() and torch.distributed.is_initialized()


def get_world_size():
    return torch.distributed.get_world_size() if is_dist() else 1


def reduce_dict(input_dict, average=True):
    world_size = get_world_size()
    if world_size < 2:
        return input_dict
    values = torch.stack([input_dict[k] for k in sorted(input_dict)])
    torch.distributed.all_reduce(values)
    return dict(zip(sorted(input_dict), values / world_size if average else values))


class TwoHeads(nn.Module):
    def __init__(self):
        super().__init__()
        self.a, self.b = nn.Linear(5, 3), nn.Linear(5, 1)

    def forward(self, images, targets):
        labels = torch.stack([t["label"] for t in targets])
        return {"loss_cls": nn.functional.cross_entropy(self.a(images), labels), "loss_box": self.b(images).abs().mean()}


def train_one_epoch(model, optimizer, data_loader, device):
    model.train()
    seen = []
    for images, targets in data_loader:
        images = torch.stack([image.to(device) for image in images])
        targets = [{k: v.to(device) if isinstance(v, torch.Tensor) else v for k, v in t.items()} for t in targets]
        loss_dict = model(images, targets)
        losses = sum(loss for loss in loss_dict.values())
        loss_dict_reduced = reduce_dict(loss_dict)
        losses_reduced = sum(loss for loss in loss_dict_reduced.values())
        loss_value = losses_reduced.item()
        if not math.isfinite(loss_value):
            print(f"Loss is {loss_value}, stopping training")
            sys.exit(1)
        optimizer.zero_grad()
        losses.backward()
        optimizer.step()
        seen.append(loss_value)
    return seen


if __name__ == "__main__":
    torch.manual_seed(0)
    device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
    net = TwoHeads().to(device)
    data = [([torch.randn(5) for _ in range(4)], [{"label": torch.tensor(i % 3), "name": str(i)} for i in range(4)]) for _ in range(6)]
    print(len(train_one_epoch(net, torch.optim.SGD(net.parameters(), 0.01), data, device)))
