"""What a lab may be asked: typed, bounded, described. No torch here: doors list the labs at once."""
