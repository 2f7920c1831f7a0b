"""Regular expressions for the options of devices and traffic."""

#: Decimals that have no other reading than the agent's.
DECIMAL = r"\d+(\.\d+)?"
TIME = rf"{DECIMAL}(ns|us|ms|s)"
