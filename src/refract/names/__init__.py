"""One namespace for links and published lists."""
