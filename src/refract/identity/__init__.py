"""Who: people, sessions, API keys, and what each may do."""
