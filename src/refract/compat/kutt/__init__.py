"""The protocol of Kutt."""
