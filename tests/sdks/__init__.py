"""The transport under the real SDKs, against a scripted provider on loopback that refuses what the real ones refuse."""
