# fix: Leave its report on the GPU
import torch

torch.manual_seed(0)
device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
batches = [torch.randn(8, 8, device=device) for _ in range(40)]
eye = torch.eye(8, device=device)

total = torch.zeros((), dtype=torch.double, device=device)
for x in batches:
    spd = x @ x.T + 8 * eye
    factor = torch.linalg.cholesky(spd)
    inverse = torch.linalg.inv(spd)
    solved = torch.linalg.solve(spd, x)
    packed, pivots = torch.linalg.lu_factor(spd)
    total += factor.sum() + inverse.sum() + solved.sum() + packed.sum() + pivots.sum()
print(total.item())
