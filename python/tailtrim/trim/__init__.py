"""Which changes cut a tail: :class:`Search` says what to try next, and what is proven."""
