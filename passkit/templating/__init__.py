"""Templates of groups: what schedules do, in the language of `passkit.template`, and back."""
