import argparse
from pathlib import Path

parser = argparse.ArgumentParser()
parser.add_argument("names", nargs="*")
parser.add_argument("--shout", action="store_true")
options = parser.parse_args()
words = " ".join(options.names)
print(parser.prog, words.upper() if options.shout else words, Path(__file__).name, __name__)
