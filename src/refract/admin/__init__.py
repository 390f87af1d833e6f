"""Administration: people, reports, links, lists, jobs, blocked domains and the audit log."""
