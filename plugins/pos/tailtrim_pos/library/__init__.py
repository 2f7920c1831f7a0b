"""Modules that scripts of an experiment import: ``poslib``, as far as published ones use it."""
