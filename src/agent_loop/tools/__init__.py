"""What a model can do: the tool contract, functions as tools, and the built-in ones."""
