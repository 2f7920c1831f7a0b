"""Programs that stand in for others on nodes; they run with nothing but Python's own library."""
