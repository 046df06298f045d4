"""Runs verify.py on cases: JSON on standard input, a list of verdicts on
standard output."""
import base64
import json
import sys

from verify import verify

cases = json.load(sys.stdin)
verdicts = [verify(c["secret"], c["headers"], base64.b64decode(c["body"]), c["now"]) for c in cases]
json.dump(verdicts, sys.stdout)
