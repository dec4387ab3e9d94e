"""Whether agents have credentials, as far as that can be known without the network. Source: run API, section 5."""
