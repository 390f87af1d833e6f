"""Backup, restore, and the move to another database, all with verification."""
