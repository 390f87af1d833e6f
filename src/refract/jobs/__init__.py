"""Background jobs: a job is a row that commits with the change that needs it."""
