"""In the page: a stand-in for the parts of IPython that cells of this book use."""
