"""OPERATORS: people, jobs, the audit log, figures."""
