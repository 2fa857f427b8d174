"""Applies the problem matcher of a page to the standard input, as VS Code does: each of its blocks of
JSON must be such. Prints severity, message, file and line of each match; fails without any. The line is a `location`:
with `line` alone VS Code takes the third group for the column."""
import json
import re
import sys

page = open(sys.argv[1], encoding='utf-8').read()
blocks = [json.loads(each) for each in re.findall(r'^ *```json$(.*?)^ *```$', page, re.S | re.M)]
matcher = next(task['problemMatcher'] for block in blocks for task in block.get('tasks', []))
pattern = matcher['pattern']
found = 0
for line in sys.stdin:
    match = re.search(pattern['regexp'], line.rstrip('\n'))
    if match:
        found += 1
        message, name, number = match.group(pattern['message'], pattern['file'], pattern['location'])
        print(matcher['severity'], message, '%s:%s' % (name, number))
sys.exit(found == 0)
