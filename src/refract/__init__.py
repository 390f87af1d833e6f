"""Refract: one self-hosted home for every link."""

__version__ = "0.1.0"
