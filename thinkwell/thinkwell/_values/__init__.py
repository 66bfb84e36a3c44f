"""Values that everything else is made of. They import only each other and public values."""
