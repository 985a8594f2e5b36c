def write_results(answers): pass
