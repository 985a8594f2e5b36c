"""What methods share: the base classes, guides, importance, latent spaces."""
