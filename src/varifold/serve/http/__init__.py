"""The HTTP door: an ASGI application over the durable core."""
