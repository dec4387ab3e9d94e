"""Records of what happened in a run, and the files that contain them."""
