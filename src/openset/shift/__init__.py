"""Background shift, made: synthetic problems with a known answer."""
