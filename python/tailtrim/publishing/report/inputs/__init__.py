"""Inputs of figures, tables and pages: the tables, explanation and trace of a run."""
