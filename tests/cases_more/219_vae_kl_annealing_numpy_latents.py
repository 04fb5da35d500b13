import torch
import torch.nn.functional as F
from torch import nn


class VAE(nn.Module):
    def __init__(self):
        super().__init__()
        self.enc, self.dec = nn.Linear(12, 8), nn.Linear(4, 12)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def forward(self, x):
        mu, logvar = self.enc(x).chunk(2, dim=1)
        z = self.reparameterize(mu, logvar)
        return torch.sigmoid(self.dec(z)), mu, logvar


def loss_function(recon_x, x, mu, logvar, beta):
    bce = F.binary_cross_entropy(recon_x, x, reduction="sum")
    kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return {"loss": bce + beta * kld, "bce": bce.detach(), "kld": -kld.detach()}


def train(epoch, model, optimizer, batches, device, latents):
    train_loss = 0
    for batch_idx, data in enumerate(batches):
        data = data.to(device)
        optimizer.zero_grad()
        recon, mu, logvar = model(data)
        parts = loss_function(recon, data, mu, logvar, min(1.0, epoch / 2))
        parts["loss"].backward()
        train_loss += parts["loss"].item()
        optimizer.step()
        latents.append(mu.detach().cpu().numpy())
        if batch_idx % 10 == 0:
            print("Train Epoch: {} loss ok: {}".format(epoch, parts["loss"].item() / len(data) > 0))
    return train_loss / len(batches)


if __name__ == "__main__":
    torch.manual_seed(1)
    device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
    model = VAE().to(device)
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-3)
    latents = []
    for epoch in range(1, 3):
        train(epoch, model, optimizer, [torch.rand(8, 12) for _ in range(5)], device, latents)
    print(len(latents))
