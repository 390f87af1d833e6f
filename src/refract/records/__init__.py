"""Import files as records: text source, CSV, JSON, and the reader that both importers extend.

Nothing here knows a database or a feature. Formats and what a record becomes are the importers'
own.
"""
