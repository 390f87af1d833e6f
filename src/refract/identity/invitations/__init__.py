"""Invitations of people to an installation that has no identity provider."""
