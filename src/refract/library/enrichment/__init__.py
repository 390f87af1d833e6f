"""Describing items: an offline tier that is always there, and a model that may do better.

words: text → words, sentences · summary: the sentences that say most · phrases: what a text is about · rules: the person's standing orders
neighbours: items that read alike · offline: all of it together → a proposal · prompt, model: the same from a model
gather: what a person has done so far
"""
