"""Results as text for a terminal.

Runs are a table and experiments, too; comparisons and explanations are lines. Nothing here imports
what takes long: commands print this and start in an instant.
"""
