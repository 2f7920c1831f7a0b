"""Results as text for a terminal: runs and experiments as tables, comparisons, explanations."""
