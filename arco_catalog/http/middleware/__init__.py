"""The layers around the handlers, one policy a module: each passes a request on to the next one inside, and the
response back. app.py lists them.
"""
