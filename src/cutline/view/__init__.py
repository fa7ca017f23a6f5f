"""The page that a human looks at, the card, and what the figures behind both are made of.

Law: reads, writes nothing, and asks nobody: no request leaves the machine. `timeline` is a session as the page shows
it, `whatif` what a cut at a place would leave, cost and lose, `replay` who filled what was sent and what cutting would
have saved, `spending` what was paid; `shelf` finds and keeps sessions, `server` and `export` are the ways to the page.
"""
