"""The performance library: what was measured on this machine, kept on disk for all programs."""
