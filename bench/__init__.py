"""What we measure and how: one file per question."""
