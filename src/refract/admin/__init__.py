"""For whoever runs the server: jobs, blocked domains, health, figures that add up."""
