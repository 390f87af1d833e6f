"""Work for later: a job is a row that commits with the change that asked for it."""
