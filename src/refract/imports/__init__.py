"""Imports as objects: what every import of links and bookmarks has, whatever it makes.

An import is a row with its state and counts; its rows tell what became of each record. The features
above read files, make objects and remove them.
"""
