"""The HTTP front: routes, authentication, admission, streaming."""
