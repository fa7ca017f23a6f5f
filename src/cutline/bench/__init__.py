"""What survives a seam: recorded sessions, cut in several ways at the same places, and what the agent went on to use.

Law: every strategy is a function of the same history; nothing is drawn at random that a hash does not give again.
"""
