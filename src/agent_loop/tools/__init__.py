"""Tools that a model can call: the contract, tools made of functions, and the built-in tools."""
