"""Plans of groups: which kernel each becomes, for which target, and what that takes."""
