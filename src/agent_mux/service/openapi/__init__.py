"""The OpenAPI document of the service: what each path says of itself, and the shapes that are sent, put together."""
