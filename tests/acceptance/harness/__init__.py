"""What the acceptance tests share: real processes, killed and counted from outside."""
