"""HTTP API: an ASGI application over the durable core."""
