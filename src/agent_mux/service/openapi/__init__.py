"""The OpenAPI document: built from routes, types and the descriptions beside them."""
