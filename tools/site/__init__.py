"""The pages of docs/ as a website."""
