"""Templates of groups: what schedules do, in the language of `template.py`."""
