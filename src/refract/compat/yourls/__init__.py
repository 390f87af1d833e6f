"""The protocol of Yourls."""
