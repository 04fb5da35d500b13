import time

import torch
from torch import nn


def epoch_time(start_time, end_time):
    elapsed_time = end_time - start_time
    elapsed_mins = int(elapsed_time / 60)
    return elapsed_mins, int(elapsed_time - elapsed_mins * 60)


def train(model, batches, optimizer, criterion):
    epoch_loss = 0
    model.train()
    for src, trg in batches:
        optimizer.zero_grad()
        loss = criterion(model(src), trg)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1)
        optimizer.step()
        epoch_loss += loss.detach()
    return epoch_loss / len(batches)


def main():
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    torch.manual_seed(0)
    model = nn.Linear(6, 6).to(device)
    optimizer = torch.optim.Adam(model.parameters())
    data = [(torch.randn(8, 6, device=device), torch.randn(8, 6, device=device)) for _ in range(5)]
    for epoch in range(3):
        start_time = time.time()
        train_loss = train(model, data, optimizer, nn.MSELoss())
        end_time = time.time()
        mins, secs = epoch_time(start_time, end_time)
        print(f"Epoch: {epoch + 1:02} | Time: {mins}m {secs}s")
    print(train_loss.item() > 0)


main()
