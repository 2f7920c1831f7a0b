"""Figures: what each shows as values (:mod:`.figure`), and their SVG or PDF (:mod:`.drawing`)."""
