"""Whatever minimises a quadratic form over a program, with a proof."""
