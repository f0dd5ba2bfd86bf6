//! Knows the inference engines by their command lines.
