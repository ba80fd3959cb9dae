"""The service layer behind every door: HTTP API, pages, command line."""
