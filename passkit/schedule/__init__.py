"""Schedules: tiles, stages and axis maps of loop nests, templates, scratch memory and cost."""
