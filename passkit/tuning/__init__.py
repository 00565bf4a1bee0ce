"""Tuning: measure the templates of groups, and calibrate the cost model, on this machine."""
