"""From the columns of a table to numbers: fitted on source, stored as JSON, applied to every later batch."""
