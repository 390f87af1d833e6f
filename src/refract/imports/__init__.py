"""Imports as objects: what imports of links and of bookmarks have in common.

An import is a row with its state and counts; its rows tell what became of each record. The features
above read files, make objects and remove them.
"""
