"""What `cutline demo` runs: a small program with a real fault, the story of its repair, and a scripted model.

Law: the words are written beforehand, the world's replies are not. The agent's own loop carries the story out, over
HTTP, with its own tools; where a reply is not what the words say of it, it fails. No network, no key. It asks for a
POSIX shell's usual tools (awk, find, grep, sort, tail, tee) and bash. `model` and `formats` know nothing of the story:
the agent's tests are written on them.
"""
