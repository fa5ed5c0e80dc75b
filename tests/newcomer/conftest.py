"""What a newcomer writes is run in a copy of the repository, not here."""

collect_ignore = ["files"]
