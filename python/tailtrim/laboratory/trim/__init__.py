"""Search for the changes that cut a tail: :class:`.search.Search` plans trials and tests gains."""
