import torch
from torch import nn

device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
model = nn.Linear(8, 2).to(device)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)


eye = torch.eye(8, device=device)
for step in range(100):
    out = model(eye)
    inverse = torch.linalg.inv_ex(eye).inverse
    factor = torch.linalg.cholesky_ex(eye).L
    quiet = torch.linalg.cholesky_ex(eye).L  # fine: the answer stays on the GPU
    size = torch.linalg.norm(eye)  # fine: nothing to check
