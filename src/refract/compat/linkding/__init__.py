"""The protocol of Linkding."""
