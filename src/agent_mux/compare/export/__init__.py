"""A comparison as a document: text for a terminal, Markdown for a comment, and one HTML file."""
