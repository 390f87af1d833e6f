"""OpenID Connect: people sign in where their account lives, and programs bring a token from there.

`tokens` is pure and decides what a token is worth; `documents` knows each provider's addresses and keys; `flow` is the way through the
browser, `bearer` the way of the API; `accounts` keeps our row about a person. Loaded only where an issuer is configured.
"""
