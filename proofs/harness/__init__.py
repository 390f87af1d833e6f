"""What every proof under faults is made of.

A site to break, a load that notes each request, a nemesis that notes each fault, a checker.

Everything stays on 127.0.0.1, is bounded in number and in time, and ends only processes that it
started itself.
"""
