import torch


@torch.no_grad()
def kmeans(points, k, rounds=6, tol=-1.0):
    centres = points[torch.randperm(len(points), device=points.device)[:k]].clone()
    for _ in range(rounds):
        owner = torch.cdist(points, centres).argmin(1)
        fresh = centres.clone()
        for j in range(k):
            members = points[owner == j]
            if len(members) == 0:
                fresh[j] = points[torch.randint(len(points), (1,)).item()]
            else:
                fresh[j] = members.mean(0)
        moved = (fresh - centres).norm(dim=1).max()
        centres = fresh
        if moved < tol:
            break
    return centres, owner


def inertia(points, centres, owner):
    return (points - centres[owner]).square().sum()


device = torch.device("cuda") if torch.cuda.is_available() else torch.device("cpu")
data = torch.randn(100, 2, device=device)
centres, owner = kmeans(data, 3)
print(centres.shape, float(inertia(data, centres, owner)) > 0)
