"""This package reads requests and writes answers, a function per route."""
