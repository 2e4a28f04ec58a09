"""What the Makefile's words run: set-up, book, server, browsers.  Not part of the package."""
