"""Abuse reports: anybody may report a link or a list, administrators decide."""
