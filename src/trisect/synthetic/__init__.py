"""Ground truth: jobs whose times are stated, and the Kineto files that such jobs would leave."""
