"""Enrichment of items: an offline tier that always works, and a model that may do better.

language: words and sentences · summary · phrases: subjects of a text · rules: tag rules
neighbours: tags of similar items · offline: all of it → a proposal
prompt, model: a proposal of a model · background: the user's tags, rules and items
"""
