"""Callbacks that make the training loops of other libraries peers, one module for each library."""
