"""Graph → a file of another tool."""
