"""Reads a file of `lanemm dhat` by the rules of valgrind's viewer, and compares it with its profile.

  python3 dhat.py PROFILE.json DHAT.out

Where node and the viewer are installed, the viewer itself reads the file, too. Prints `done`.
"""
import json
import os
import shutil
import subprocess
import sys

FIELDS = {'tb': 'alloc_space', 'tbk': 'alloc_objects', 'gb': 'peak_space', 'gbk': 'peak_objects',
          'eb': 'inuse_space', 'ebk': 'inuse_objects'}
VIEWER = '/usr/libexec/valgrind/dh_view.js'
# The viewer without a page: its choices of a sort order, of which none is disabled, and its tree.
CALLER = '''
const fs = require('fs'), vm = require('vm');
const text = fs.readFileSync(process.argv[1], 'utf8') + `
gData = JSON.parse(input);
gSelect = {childNodes: gSelectData.map(() => ({})), selectedIndex: 0};
buildTree();
[gRoot._totalBytes, gRoot._totalBlocks, gRoot._atTGmaxBytes, gRoot._atTGmaxBlocks,
 gRoot._atTEndBytes, gRoot._atTEndBlocks].join(' ')`;
console.log(vm.runInNewContext(text, {input: fs.readFileSync(process.argv[2], 'utf8'), document: {}, Intl}));
'''


def main(profile_name, dhat_name):
    with open(profile_name, encoding='utf-8') as file:
        profile = json.load(file)['profiles'][-1]
    with open(dhat_name, encoding='utf-8') as file:
        dhat = json.load(file)
    for field in ('dhatFileVersion mode verb bklt bkacc tu Mtu cmd pid te pps ftbl tg tuth').split():
        assert field in dhat, field
    assert dhat['dhatFileVersion'] == 2 and dhat['bklt'] and not dhat['bkacc']
    assert 0 <= dhat['tg'] <= dhat['te']
    assert dhat['ftbl'][0] == '[root]' and dhat['pps']
    columns = [column['name'] for column in profile['columns']]
    sums = []
    for field, column in FIELDS.items():
        place = columns.index(column)
        sums.append(sum(point[field] for point in dhat['pps']))
        assert sums[-1] == sum(site['values'][place] for site in profile['sites']), field
    assert sums[0] > 0, 'no bytes'
    stacks = [tuple(point['fs']) for point in dhat['pps']]
    assert len(set(stacks)) == len(stacks), 'a repeated location'
    for point in dhat['pps']:
        assert all(0 < frame < len(dhat['ftbl']) for frame in point['fs'])
        assert point['mb'] >= max(point['gb'], point['eb']) and point['tl'] >= 0
        assert point['mbk'] >= max(point['gbk'], point['ebk'])
    if os.path.exists(VIEWER) and shutil.which('node'):
        found = subprocess.run(['node', '-e', CALLER, VIEWER, dhat_name], check=True,
                               capture_output=True, text=True).stdout.split()
        assert found == [str(value) for value in sums], (found, sums)
    print('done')


main(*sys.argv[1:])
