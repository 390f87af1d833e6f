"""Enrichment of items: an offline tier that always works, and a model that may do better.

language: words, sentences and key phrases · summary · rules: tag rules
offline: all of it and the tags of similar items → a proposal
prompt, model: a proposal of a model · background: the user's tags, rules and items
"""
