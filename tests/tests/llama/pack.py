"""Packs this Python, xllamacpp and all that the two load, for a machine that has none of it: `pack.py DIRECTORY`.

There it runs with DIRECTORY/lib in LD_LIBRARY_PATH and DIRECTORY/modules in PYTHONPATH."""

import os
import shutil
import subprocess
import sys

import xllamacpp  # noqa: F401  It is packed with all that is loaded now.


def link(source, target):
    """A hard link where that can be, for one of them has 100 MB."""
    os.makedirs(os.path.dirname(target), exist_ok=True)
    try:
        os.link(source, target)
    except OSError:
        shutil.copy(source, target)


def libraries(program):
    """Those that it is linked with: the name that is asked for, and the file."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True).stdout
    for words in map(str.split, listed.splitlines()):
        paths = [word for word in words if word.startswith("/")]
        if paths:
            yield os.path.basename(words[0]), paths[-1]


directory = sys.argv[1]
python = os.path.realpath(sys.executable)
link(python, os.path.join(directory, "python"))
programs = [python]
files = {getattr(module, "__file__", None) for module in sys.modules.values()}
for file in files - {None, os.path.abspath(__file__)}:
    roots = [path for path in sys.path if path and file.startswith(path + os.sep)]
    if not roots:
        continue
    # Where the longest of the paths that lead to it finds it.
    name = os.path.relpath(file, max(roots, key=len))
    link(file, os.path.join(directory, "modules", name))
    if ".so" in os.path.basename(file):
        programs.append(file)
packed = set()
for program in programs:
    for name, file in libraries(program):
        if name not in packed:
            packed.add(name)
            link(os.path.realpath(file), os.path.join(directory, "lib", name))
