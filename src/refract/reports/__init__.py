"""Abuse reports: anyone may report a link or list, administrators decide."""
