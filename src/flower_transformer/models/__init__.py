"""Models put together from the layers, one a file: a configuration, a module, a parameter count."""
