"""A small coding session that is really carried out: what `cutline demo` cuts.

Law: the words are written beforehand, the world's replies are not. Every command runs, every file is read
and edited, in a directory that the caller gives; where a reply is not what the words say of it, the build
fails. No network, no key, no clock; only Python's standard library, and a POSIX shell with its usual tools
(awk, find, grep, sort, tail, tee).
"""
