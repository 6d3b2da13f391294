"""Jobs whose times are known because they were chosen, and the Kineto files that they would leave."""
