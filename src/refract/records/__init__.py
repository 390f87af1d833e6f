"""Import files as records: text source, CSV, JSON, and the reader that both importers extend.

Nothing here depends on a database or a feature. The importers define their formats and rows.
"""
