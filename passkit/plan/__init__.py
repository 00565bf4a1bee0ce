"""Groups, targets, schedules and cost estimates: the plan of each kernel."""
