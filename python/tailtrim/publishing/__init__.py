"""Publishing: reports, exports, factors, claims and releases, made from results."""
