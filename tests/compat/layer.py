"""Let another environment see the packages of this one: python layer.py FOLDER."""

import sys
import sysconfig
from pathlib import Path

here = sysconfig.get_path("purelib")
there = sysconfig.get_path("purelib", vars={"base": sys.argv[1], "platbase": sys.argv[1]})
# Its own packages come first; editable ones of this environment count too.
line = f"import site; site.addsitedir({here!r})\n"
Path(there, "layer.pth").write_text(line)
