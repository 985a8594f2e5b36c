"""The explorer and the service: a model and its explanations over HTTP."""
