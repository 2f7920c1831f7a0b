"""Laboratory: nodes and devices, plans, and the experiments that run them."""
