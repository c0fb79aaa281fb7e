"""A local page to review a run: look at its images, correct its categories, approve them."""
