"""What each provider refuses, one module a format: a request body goes in, the list of its faults comes out.

Written from the rules, not from what the cut makes, and leaning on nothing of it. Each fault begins with the
provider's own words where they are known, or with the path of what they speak of. Where the rules leave room, the
body is accepted.
"""
