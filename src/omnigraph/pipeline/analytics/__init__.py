"""Graph algorithms whose values are stored, and the same algorithms on Spark.

`analysis` chooses the engine and needs no Spark; the other modules compute a `Network` of data
frames. The values are the same on both engines and in every run: numbers are added as integers, and
ties go to what comes first in the order of texts.
"""
