"""Click limits: a link redirects at most so many times, counted exactly."""
