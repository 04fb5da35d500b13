import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
scaler = torch.amp.GradScaler("cuda")
for step in range(100):
    out = model(torch.randn(4, 8, device=device))
    loss = out[out > 0].sum()
    scaler.scale(loss).backward()  # want `scaler.scale(loss).backward()` counts the hits of the mask
    nn.utils.clip_grad_norm_(model.parameters(), 1.0)  # fine: the norm stays on the GPU
    scaler.step(optimizer)  # want `scaler.step(optimizer)` whether a gradient overflowed
    scaler.update()
    schedule.step(loss.detach())  # want `schedule.step(loss.detach())` compares the value on the host


import torchmetrics
from torchmetrics.classification import BinaryAccuracy, MulticlassAccuracy

labels = torch.randint(0, 2, (4,), device=device)
accuracy = MulticlassAccuracy(num_classes=2, average="micro").to(device)
balanced = MulticlassAccuracy(num_classes=2, validate_args=False).to(device)
binary = BinaryAccuracy().to(device)
unchecked = torchmetrics.Accuracy(task="binary", validate_args=False).to(device)
average = torchmetrics.MeanMetric().to(device)
trusting = torchmetrics.MeanMetric(nan_strategy="disable").to(device)
error = torchmetrics.MeanSquaredError().to(device)
pearson = torchmetrics.PearsonCorrCoef().to(device)
averaged = torch.optim.ASGD(model.parameters())
for step in range(100):
    out = model(torch.randn(4, 8, device=device)).softmax(-1)
    out.sum().backward()
    accuracy.update(out, labels)  # fine: scores are not counted
    balanced.update(out, labels)  # want `balanced.update(out, labels)` the metric checks its input
    accuracy.update(out.argmax(1), labels)  # want `accuracy.update(out.argmax(1), labels)` the metric checks its input
    binary.update(out[:, 0], labels)  # want `binary.update(out[:, 0], labels)` the metric checks its input
    unchecked.update(out[:, 0], labels)  # fine
    average.update(out.mean())  # want `average.update(out.mean())` the metric checks its input
    trusting.update(out.mean())  # fine
    error.update(out[:, 0], labels.float())  # fine
    pearson.update(out[:, 0], labels.float())  # fine
    pearson(out[:, 0], labels.float())  # want `pearson(out[:, 0], labels.float())` the metric checks its input
    averaged.step()  # want `averaged.step()` ASGD copies its step sizes
