"""Plans that come with tailtrim."""
