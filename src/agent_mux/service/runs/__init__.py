"""The runs of a service: asked for, watched, told things, remembered, and found again after a crash."""
