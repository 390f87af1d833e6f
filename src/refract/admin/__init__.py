"""For whoever runs the server: people, jobs, blocked domains, health, the audit log, figures that add up."""
