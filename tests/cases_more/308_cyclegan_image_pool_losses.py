import random
from collections import OrderedDict

import torch
from torch import nn


class ImagePool:
    def __init__(self, pool_size):
        self.pool_size, self.images = pool_size, []

    def query(self, images):
        out = []
        for image in images:
            image = image.data.unsqueeze(0)
            if len(self.images) < self.pool_size:
                self.images.append(image)
                out.append(image)
            elif random.uniform(0, 1) > 0.5:
                i = random.randint(0, self.pool_size - 1)
                out.append(self.images[i].clone())
                self.images[i] = image
            else:
                out.append(image)
        return torch.cat(out, 0)


class GANLoss(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("real_label", torch.tensor(1.0))
        self.register_buffer("fake_label", torch.tensor(0.0))
        self.loss = nn.MSELoss()

    def __call__(self, prediction, target_is_real):
        target = self.real_label if target_is_real else self.fake_label
        return self.loss(prediction, target.expand_as(prediction))


class CycleModel:
    def __init__(self, device):
        self.device, self.loss_names = device, ["D", "G", "cycle"]
        self.netG, self.netF = nn.Conv2d(3, 3, 3, padding=1).to(device), nn.Conv2d(3, 3, 3, padding=1).to(device)
        self.netD = nn.Conv2d(3, 1, 3).to(device)
        self.pool, self.criterion = ImagePool(6), GANLoss().to(device)
        self.opt_g = torch.optim.Adam([*self.netG.parameters(), *self.netF.parameters()])
        self.opt_d = torch.optim.Adam(self.netD.parameters())

    def set_input(self, batch):
        self.real_A, self.real_B = batch["A"].to(self.device), batch["B"].to(self.device)

    def optimize_parameters(self):
        fake_B = self.netG(self.real_A)
        self.loss_cycle = (self.netF(fake_B) - self.real_A).abs().mean()
        self.loss_G = self.criterion(self.netD(fake_B), True) + 10 * self.loss_cycle
        self.opt_g.zero_grad()
        self.loss_G.backward()
        self.opt_g.step()
        fake = self.pool.query(fake_B)
        self.loss_D = 0.5 * (self.criterion(self.netD(self.real_B), True) + self.criterion(self.netD(fake), False))
        self.opt_d.zero_grad()
        self.loss_D.backward()
        self.opt_d.step()

    def get_current_losses(self):
        errors = OrderedDict()
        for name in self.loss_names:
            errors[name] = float(getattr(self, "loss_" + name))
        return errors


if __name__ == "__main__":
    random.seed(0)
    torch.manual_seed(0)
    model = CycleModel(torch.device("cuda" if torch.cuda.is_available() else "cpu"))
    total_iters, message = 0, ""
    for i in range(6):
        total_iters += 2
        model.set_input({"A": torch.rand(2, 3, 8, 8), "B": torch.rand(2, 3, 8, 8)})
        model.optimize_parameters()
        losses = model.get_current_losses()
        message = ", ".join("%s: %.3f" % kv for kv in losses.items())
    print(message.count(":"))
