"""What sets the transfer time: bytes, routes and rates; and the model that follows from them (docs/model.md)."""
