"""Who may do what: policy files compiled to Cedar, and decisions."""
