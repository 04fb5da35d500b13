import torch

x = torch.ones(3, device="cuda")
y = x.sum()
z = x.sum()  # a sum
for step in range(100):
    x = x * 2
    print(x)  # rooflint: ignore[tensor-as-text] both
    print(x)  # rooflint: ignore[tensor-as-text]
    print(x)  # rooflint: ignore[tensor-as-text]
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
