"""What options of devices and traffic are written as."""

#: Decimals that have no other reading than the agent's.
DECIMAL = r"\d+(\.\d+)?"
TIME = rf"{DECIMAL}(ns|us|ms|s)"
