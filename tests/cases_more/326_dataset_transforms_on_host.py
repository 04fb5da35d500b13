import random

import torch
from torch import nn
from torch.utils.data import DataLoader, Dataset


class RandomErasing:
    def __init__(self, p):
        self.p = p

    def __call__(self, img):
        if torch.rand(1).item() > self.p:
            return img
        h = int(torch.randint(1, 4, (1,)))
        top = torch.randint(0, img.shape[1] - h, (1,)).item()
        img[:, top : top + h, :] = img.mean()
        return img


class Pictures(Dataset):
    def __init__(self, n=32):
        self.images, self.labels = torch.rand(n, 3, 10, 10), torch.randint(0, 4, (n,))
        self.erase = RandomErasing(0.5)
        bright = self.images.flatten(1).mean(1) > 0.3
        self.index = bright.nonzero().flatten().tolist()

    def __len__(self):
        return len(self.index)

    def __getitem__(self, i):
        j = self.index[i]
        img = self.images[j].clone()
        if random.random() < 0.5:
            img = img.flip(-1)
        return self.erase(img), int(self.labels[j])


def main():
    random.seed(0)
    torch.manual_seed(0)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    loader = DataLoader(Pictures(), batch_size=8, shuffle=True, pin_memory=torch.cuda.is_available(), drop_last=True)
    net = nn.Sequential(nn.Flatten(), nn.Linear(300, 4)).to(device)
    opt = torch.optim.SGD(net.parameters(), lr=0.1)
    loss_fn = nn.CrossEntropyLoss(label_smoothing=0.1)
    for epoch in range(2):
        for img, label in loader:
            img, label = img.to(device, non_blocking=True), label.to(device, non_blocking=True)
            loss = loss_fn(net(img), label)
            opt.zero_grad()
            loss.backward()
            opt.step()
    print("done", epoch)


if __name__ == "__main__":
    main()
