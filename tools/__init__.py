"""What building and testing Refract needs besides Refract.

Plain standard library, so that any python3 can run it.
"""
