"""Writes what VS Code reads: the tasks.json and launch.json of a page, the settings of a user, and an extension that
makes a debug adapter from npm known.

  python3 settings.py PAGE FOLDER

The launch.json of the page is for the extension C/C++; here it has the words of cdt-gdb-adapter.
"""
import json
import os
import re
import sys

page = open(sys.argv[1], encoding='utf-8').read()
folder = sys.argv[2]
tasks, launch = (json.loads(each) for each in re.findall(r'^ *```json$(.*?)^ *```$', page, re.S | re.M))
run = launch['configurations'][0]
run['type'] = 'gdb'
run['environment'] = {each['name']: each['value'] for each in run['environment']}
run['initCommands'] = [each['text'].replace('/usr/local', folder) for each in run['setupCommands']
                       if each['text'].startswith('source ')]
del run['setupCommands'], run['MIMode']

settings = {
    'workbench.startupEditor': 'none',
    'workbench.colorTheme': 'Default Light Modern',
    'editor.minimap.enabled': False,
    'window.commandCenter': False,
    'workbench.layoutControl.enabled': False,
    'git.enabled': False,
    'debug.internalConsoleOptions': 'neverOpen',
}
extension = {
    'name': 'gdb', 'publisher': 'lanemm', 'version': '1.0.0', 'engines': {'vscode': '^1.80.0'},
    'contributes': {
        'languages': [{'id': 'pascal', 'extensions': ['.pas', '.lpr']}],
        'breakpoints': [{'language': 'pascal'}],
        'debuggers': [{'type': 'gdb', 'label': 'gdb', 'runtime': 'node',
                       'program': folder + '/node/node_modules/cdt-gdb-adapter/dist/debugAdapter.js'}],
    },
}
for name, content in (('orders/.vscode/tasks.json', tasks), ('orders/.vscode/launch.json', launch),
                      ('data/User/settings.json', settings), ('extensions/lanemm.gdb/package.json', extension)):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as out:
        json.dump(content, out, indent=2)
