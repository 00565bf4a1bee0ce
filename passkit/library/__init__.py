"""The performance library: measurements of this machine, in the cache folder."""
