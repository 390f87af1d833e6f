"""OpenID Connect: sign-in with a provider's account, and the provider's access tokens on the API.

`tokens` is pure and validates tokens; `providers` holds each provider's metadata and keys; `flow`
is the sign-in in the browser; `accounts` keeps our row of a user and resolves bearer tokens.
Loaded only where an issuer is configured.
"""
