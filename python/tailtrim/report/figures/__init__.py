"""Figures: what each shows as values (:mod:`.figure`), and their SVG and PDF (:mod:`.drawing`)."""
