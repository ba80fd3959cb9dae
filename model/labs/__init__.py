"""The labs: experiments that measure one claim each, named in `catalogue`, each in a file of its own."""
