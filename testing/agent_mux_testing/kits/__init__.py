"""Test kits of the built-in adapters: how to install and drive each real CLI offline."""
