"""The error of the API."""


class RESTError(Exception):
    """The controller refused."""
