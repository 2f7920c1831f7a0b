"""What figures, tables and pages are made from: the tables, explanation and trace of a run."""
