"""What Attention Atlas is measured against."""
