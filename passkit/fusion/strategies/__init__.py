"""The strategies that passkit has; each module is imported when its strategy is looked up."""
