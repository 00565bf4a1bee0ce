"""Templates of groups: what schedules do, in the language of `passkit.templating.template`, and back."""
