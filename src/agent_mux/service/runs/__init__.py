"""The runs of a service: started, read, controlled, stored, and recovered after a crash."""
