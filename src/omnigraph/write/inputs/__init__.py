"""What people load: lines of JSON, and tables of one type each.

Every input streams: it is read once, a bounded piece at a time, and handed to the intake. Nothing
here raises for bad data: the intake is told what is wrong and where, and reading goes on.
"""
