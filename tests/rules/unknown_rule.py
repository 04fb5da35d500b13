import torch

x = torch.ones(3)  # rooflint: ignore[nonsense] # want `nonsense` use one of blocking-copy
y = x.sum()  # rooflint: ignore[item-in-lop, copy-to-host] # want `item-in-lop` did you mean item-in-loop?
z = y.item()  # rooflint: ignore[item-in-loop] it is read once
text = "# rooflint: ignore[shown]"
page = """
# rooflint: ignore[shown]
"""
w = x.sum()  # the mean  # rooflint: ignore # want `# rooflint: ignore` names no rule
v = x.sum()  # rooflint: ignore[] # want `# rooflint: ignore[]` names no rule
