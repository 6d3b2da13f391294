"""What sets transfer time: bytes by algorithm and route, latency and bandwidth, implied rates."""
