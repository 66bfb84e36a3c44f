"""Random mutants of the sources: does the suite find a bug wherever one is put?"""
