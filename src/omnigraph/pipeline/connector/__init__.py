"""The Spark data source `omnigraph`: scans, filters, writer, change streams in and out."""
