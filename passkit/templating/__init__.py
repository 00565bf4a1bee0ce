"""Schedule templates in FusionStitching's grammar: parsed, printed and applied."""
