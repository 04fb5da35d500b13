import torch

x = torch.ones(3, device="cuda")
y = x.sum()  # rooflint: ignore[item-in-loop] # want `item-in-loop` says nothing
z = x.sum()  # a sum  # rooflint: ignore[item-in-loop] it is read once # want `item-in-loop` says nothing
for step in range(100):
    x = x * 2
    print(x)  # rooflint: ignore[tensor-as-text, item-in-loop] both # want `item-in-loop` says nothing
    print(x)  # rooflint: ignore[copy-to-host, tensor-as-text, item-in-loop] # want `copy-to-host` says nothing `item-in-loop` says nothing
    print(x)  # rooflint: ignore[tensor-as-text, tensor-as-text] # want `tensor-as-text` says nothing
    print(x)  # rooflint: ignore[tensor-as-text] it is a demonstration
    print(x)  # rooflint: ignore[tensor-as-text, copy-to-host, unused-ignore] as versions differ
    print(  # rooflint: ignore[tensor-as-text] from the first line of a statement
        "x",
        x,
    )
    print(
        "x",
        x,
    )  # rooflint: ignore[tensor-as-text] from its last
    print(
        "x",  # rooflint: ignore[tensor-as-text]
        x,
    )
    print(
        "x",
        x,  # rooflint: ignore[tensor-as-text]
    )
    text = "# rooflint: ignore[item-in-loop]"
