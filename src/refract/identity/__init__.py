"""Accounts, sessions, API keys, sign-in and permissions."""
