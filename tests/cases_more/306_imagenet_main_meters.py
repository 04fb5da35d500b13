import time
from enum import Enum

import torch
import torch.nn as nn


class Summary(Enum):
    NONE = 0
    AVERAGE = 1


class AverageMeter(object):
    def __init__(self, name, fmt=":f", summary_type=Summary.AVERAGE):
        self.name, self.fmt, self.summary_type = name, fmt, summary_type
        self.reset()

    def reset(self):
        self.val, self.avg, self.sum, self.count = 0, 0, 0, 0

    def update(self, val, n=1):
        self.val = val
        self.sum += val * n
        self.count += n
        self.avg = self.sum / self.count

    def __str__(self):
        fmtstr = "{name} {val" + self.fmt + "} ({avg" + self.fmt + "})"
        return fmtstr.format(**self.__dict__)


class ProgressMeter(object):
    def __init__(self, num_batches, meters, prefix=""):
        self.meters, self.prefix, self.num_batches = meters, prefix, num_batches

    def display(self, batch):
        entries = [f"{self.prefix}[{batch}/{self.num_batches}]"]
        entries += [str(meter) for meter in self.meters]
        print(len("\t".join(entries)) > 0)


def accuracy(output, target, topk=(1,)):
    with torch.no_grad():
        maxk, batch_size = max(topk), target.size(0)
        _, pred = output.topk(maxk, 1, True, True)
        correct = pred.t().eq(target.view(1, -1).expand_as(pred.t()))
        return [correct[:k].reshape(-1).float().sum(0, keepdim=True).mul_(100.0 / batch_size) for k in topk]


def train(train_loader, model, criterion, optimizer, epoch, device, print_freq=10):
    losses, top1, top5 = AverageMeter("Loss", ":.4e"), AverageMeter("Acc@1", ":6.2f"), AverageMeter("Acc@5", ":6.2f")
    progress = ProgressMeter(len(train_loader), [losses, top1, top5], prefix=f"Epoch: [{epoch}]")
    model.train()
    for i, (images, target) in enumerate(train_loader):
        images = images.to(device, non_blocking=True)
        target = target.to(device, non_blocking=True)
        output = model(images)
        loss = criterion(output, target)
        acc1, acc5 = accuracy(output, target, topk=(1, 5))
        losses.update(loss.item(), images.size(0))
        top1.update(acc1[0], images.size(0))
        top5.update(acc5[0], images.size(0))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        if i % print_freq == 0:
            progress.display(i + 1)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(27, 8)).to(device)
    data = torch.utils.data.TensorDataset(torch.randn(48, 3, 3, 3), torch.randint(0, 8, (48,)))
    loader = torch.utils.data.DataLoader(data, batch_size=8, shuffle=True, pin_memory=device.type == "cuda")
    optimizer = torch.optim.SGD(model.parameters(), 0.1, momentum=0.9)
    started = time.strftime("%H:%M")
    for epoch in range(2):
        train(loader, model, nn.CrossEntropyLoss().to(device), optimizer, epoch, device)
    return len(started)


print(main())
