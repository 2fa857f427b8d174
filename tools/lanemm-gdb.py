"""gdb on programs of Free Pascal, and on all that run on LaneMM; see docs/debugger.md.

Commands, on a process and on a core file: `lanemm at EXPR`, `lanemm who EXPR`, `lanemm why EXPR`,
`lanemm classes`, `lanemm leaks`, `lanemm check`, `lanemm threads`. They run the tool lanemm on what gdb debugs, so
that the records of the heap are read in one place. The printers read memory by themselves: they
need no lanemm, and no LaneMM in the program. 64-bit programs of Free Pascal 3.2.2.
"""
import os
import re
import shutil
import subprocess
import tempfile

import gdb

WORD = 8
FOLDER = os.path.dirname(os.path.realpath(__file__))  # gdb forgets it after this file


# ---------------------------------------------------------------------------- memory

def read(address, size):
    return gdb.selected_inferior().read_memory(address, size).tobytes()


def word(address, size=WORD):
    return int.from_bytes(read(address, size), 'little', signed=True)


def pointer(address):
    return word(address) & 0xFFFFFFFFFFFFFFFF


def short_string(address):
    """The text of a ShortString, which its length begins."""
    return read(address + 1, read(address, 1)[0]).decode('utf-8', 'replace')


# ---------------------------------------------------------------------------- objects

CLASS_NAME, PARENT, INTERFACES = 24, 16, 80  # fields of a class record
ENTRY_BYTES, ENTRY_OFFSET = 40, 16           # an entry of its table of interfaces
MOST_OFFSET = 1 << 16                        # bytes of an object before an interface


def class_of(address):
    """The class record of the object there, or 0: its size stands in it twice, once negative."""
    try:
        record = pointer(address)
        size = word(record)
        if size >= WORD and word(record + WORD) == -size:
            return record
    except (gdb.MemoryError, OverflowError):
        pass
    return 0


def class_name(record):
    return short_string(pointer(record + CLASS_NAME))


def has_interface_at(record, offset):
    """Whether objects of the class, or of its parents, have an interface at this offset."""
    while record:
        table = pointer(record + INTERFACES)
        for index in range(word(table) if table else 0):
            if word(table + WORD + index * ENTRY_BYTES + ENTRY_OFFSET) == offset:
                return True
        parent = pointer(record + PARENT)
        record = pointer(parent) if parent else 0
    return False


def object_of_interface(address):
    """The object that an interface at this address belongs to, or 0."""
    try:
        for offset in range(WORD, MOST_OFFSET, WORD):
            record = class_of(address - offset)
            if record and word(record) > offset and has_interface_at(record, offset):
                return address - offset
    except gdb.MemoryError:
        pass
    return 0


def describe(address):
    """An address as text, with the class of an object there."""
    if address == 0:
        return 'nil'
    record = class_of(address)
    return '%s at %#x' % (class_name(record), address) if record else '%#x' % address


# ---------------------------------------------------------------------------- types

STRINGS = {'ANSISTRING': 1, 'RAWBYTESTRING': 1, 'UTF8STRING': 1, 'UNICODESTRING': 2, 'WIDESTRING': 2}


def upper_name(of):
    return (of.name or of.strip_typedefs().name or '').upper()


def root_name(of):
    """The name of the oldest parent of a class or an interface."""
    while of.code == gdb.TYPE_CODE_STRUCT and of.fields() and of.fields()[0].is_base_class:
        of = of.fields()[0].type.strip_typedefs()
    return upper_name(of)


def target_of(of):
    of = of.strip_typedefs()
    return of.target().strip_typedefs() if of.code == gdb.TYPE_CODE_PTR else of


def is_pointer(of):
    return of.strip_typedefs().code == gdb.TYPE_CODE_PTR


def is_array(of):
    """Dynamic arrays: with DWARF 2 a pointer to an array of its own name."""
    target = target_of(of)
    return target.code == gdb.TYPE_CODE_ARRAY and (not is_pointer(of) or upper_name(target) == upper_name(of))


def data_of(value):
    """The address of the data of a string, an array or an interface. With DWARF 2 the value is that
    pointer; with DWARF 3 gdb follows it in variables, whose bounds are then those of the data, and not
    in fields and elements."""
    if is_pointer(value.type):
        return int(value)
    if value.address is None or int(value.address) == 0:
        return 0
    address = int(value.address)
    of = value.type.strip_typedefs()
    if of.code == gdb.TYPE_CODE_ARRAY:
        try:
            if of.range()[1] == word(address - WORD):
                return address
        except (gdb.error, gdb.MemoryError):
            pass
        return pointer(address)
    return address


def offset_of(of, name):
    """Where a field of the class, or of a parent, begins; None without one."""
    for each in of.strip_typedefs().fields():
        if each.is_base_class:
            found = offset_of(each.type, name)
            if found is not None:
                return found + each.bitpos // 8
        elif each.name and each.name.upper() == name and hasattr(each, 'bitpos'):
            return each.bitpos // 8
    return None


def place_of(address, name, of=None):
    """The address of a field of the object there, of which a variable has the type `of`; None where gdb
    does not know the class. Other types may have its name: a class descends from TObject. The names are
    in upper case with DWARF 2."""
    record = class_of(address)
    known = [of] if of else []
    for text in (class_name(record), class_name(record).upper()) if record else ():
        try:
            known.append(target_of(gdb.lookup_type(text)))
        except gdb.error:
            pass
    for each in known:
        found = offset_of(each, name) if root_name(each) == 'TOBJECT' else None
        if found is not None:
            return address + found
    return None


# ---------------------------------------------------------------------------- printers

MOST = 200  # elements, as `set print elements` has


def string_text(data, size):
    """The text of a string whose characters begin at data, as Pascal writes it."""
    if data == 0:
        return "''"
    length = word(data - WORD)
    if length < 0:
        return 'no string at %#x' % data
    text = read(data, min(length, MOST) * size).decode('utf-8' if size == 1 else 'utf-16-le', 'replace')
    return "'%s'%s" % (text.replace("'", "''"), '' if length <= MOST else '... %d in all' % length)


class StringPrinter:
    def __init__(self, value, size):
        self.value, self.size = value, size

    def to_string(self):
        return string_text(data_of(self.value), self.size)


class ArrayPrinter:
    def __init__(self, value):
        self.value = value
        self.data = data_of(value)
        self.count = max(0, word(self.data - WORD) + 1) if self.data else 0

    def to_string(self):
        return 'array of %d' % self.count

    def element(self, of, index):
        if upper_name(of) in STRINGS:
            return string_text(pointer(self.data + index * WORD), STRINGS[upper_name(of)])
        if is_array(of) and (is_pointer(of) or getattr(of, 'dynamic', False)):
            return 'array at %#x' % pointer(self.data + index * WORD)
        return gdb.Value(self.data + index * of.sizeof).cast(of.pointer()).dereference()

    def children(self):
        of = target_of(self.value.type).target()
        for index in range(min(self.count, MOST)):
            yield '[%d]' % index, self.element(of, index)

    def display_hint(self):
        return 'array'


def count_of(address, of=None):
    return word(place_of(address, 'FCOUNT', of), 4)


def strings_of(address, of):
    items = pointer(place_of(address, 'FLIST', of))
    for index in range(count_of(address, of)):
        text, held = (pointer(items + (index * 2 + each) * WORD) for each in (0, 1))
        yield string_text(text, 1) + (' ' + describe(held) if held else '')


def pointers_of(address, of):
    items = pointer(place_of(address, 'FLIST', of))
    if class_of(items):  # a TList has a TFPList
        address, items, of = items, pointer(place_of(items, 'FLIST')), None
    for index in range(count_of(address, of)):
        yield describe(pointer(items + index * WORD))


def hashed_of(address, of):
    items, names, later = (place_of(address, each, of) for each in ('FHASHLIST', 'FSTRS', 'FITEMS'))
    for index in range(count_of(address, of)):
        # hash, place of its name, next one, data; from Free Pascal 3.2.3 on hash, next one, name, data
        place = pointer(later or items) + index * 3 * WORD
        yield '%s %s' % (string_text(pointer(place + WORD), 1) if later
                         else "'%s'" % short_string(pointer(names) + word(place + 4, 4)),
                         describe(pointer(place + 2 * WORD)))


LISTS = {'TSTRINGLIST': (strings_of, 'FLIST'), 'TLIST': (pointers_of, 'FLIST'),
         'TFPLIST': (pointers_of, 'FLIST'), 'TFPHASHLIST': (hashed_of, 'FCOUNT')}


def items_of(address, of):
    """The items of a list that the printers know, by its class or a parent's; None for others."""
    record = class_of(address)
    while record:
        if class_name(record).upper() in LISTS:
            items, first = LISTS[class_name(record).upper()]
            return items(address, of) if place_of(address, first, of) else None
        parent = pointer(record + PARENT)
        record = pointer(parent) if parent else 0
    return None


class ObjectPrinter:
    """A reference to an object: its class, which may be another one than that of the variable."""

    def __init__(self, address, of=None):
        self.address = address
        self.items = items_of(address, of)
        if self.items is not None:  # to front ends gdb gives `{...}` for all that has children
            self.children = self.first_items

    def to_string(self):
        return describe(self.address)

    def first_items(self):
        for index, text in enumerate(self.items):
            if index == MOST:
                break
            yield '[%d]' % index, text

    def display_hint(self):
        return 'array' if self.items is not None else None


class InterfacePrinter(ObjectPrinter):
    """A reference to an interface: the object that it is of."""

    def __init__(self, value):
        self.place = data_of(value)
        found = object_of_interface(self.place)
        if not found and not is_pointer(value.type) and self.place:  # a field: it holds the pointer
            self.place = pointer(self.place)
            found = object_of_interface(self.place)
        ObjectPrinter.__init__(self, found)

    def to_string(self):
        return describe(self.address) if self.address or not self.place else 'interface at %#x' % self.place


def is_dynamic(value):
    """Whether an array of DWARF 3 is a dynamic one: before its data stand a count of references and
    its last index."""
    if getattr(value.type.strip_typedefs(), 'dynamic', False):
        return True
    try:
        address = int(value.address)
        return (value.type.strip_typedefs().range()[1] == word(address - WORD)
                and -1 <= word(address - 2 * WORD) < 1 << 20)
    except (gdb.error, gdb.MemoryError, TypeError, OverflowError):
        return False


def find_printer(value):
    name, of = upper_name(value.type), value.type.strip_typedefs()
    if of.code not in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_ARRAY, gdb.TYPE_CODE_STRUCT):
        return None
    if name in STRINGS and of.code != gdb.TYPE_CODE_STRUCT:
        return StringPrinter(value, STRINGS[name])
    target = target_of(of)
    root = root_name(target)
    if root == 'TOBJECT' and is_pointer(of):
        return ObjectPrinter(int(value), target)
    if root in ('IUNKNOWN', 'IINTERFACE'):
        return InterfacePrinter(value)
    if is_array(value.type) and (is_pointer(of) or is_dynamic(value)):
        return ArrayPrinter(value)
    return None


gdb.pretty_printers.append(find_printer)


# ---------------------------------------------------------------------------- commands

NOT_PERMITTED = 5  # exit code of lanemm


def tool():
    """The path of lanemm: beside this file's prefix, where a shell finds it, or in this file's repository."""
    beside, built = os.path.join(FOLDER, '../../bin/lanemm'), os.path.join(FOLDER, '../build/lanemm')
    found = shutil.which(beside) or shutil.which('lanemm') or shutil.which(built)
    if not found:
        raise gdb.GdbError('the tool lanemm is not installed: `make install`, or the package lanemm-tools')
    return found


def call(*words):
    done = subprocess.run([tool(), *words], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True)
    return done.returncode, done.stdout, done.stderr


def core_file():
    """The core file that gdb debugs, or None."""
    found = re.search(r"Local core dump file:\s+`(.*)', file type", gdb.execute('info files', to_string=True))
    return found and found.group(1)


def on_core(path, command, *words):
    if command != 'state':
        return call(command, path, *words)
    program = gdb.current_progspace().filename
    return call('core', path, *([program] if program else []), *words)


def on_snapshot(command, *words):
    """Has gdb write a core file for lanemm: with it come the registers, and what only gdb can read."""
    folder = tempfile.mkdtemp()
    try:
        path = os.path.join(folder, 'core')
        gdb.execute('generate-core-file ' + path, to_string=True)
        return on_core(path, command, *words)
    finally:
        shutil.rmtree(folder)


def ask(command, *words, exact=False):
    """Runs lanemm, and returns what it prints."""
    inferior = gdb.selected_inferior()
    core = core_file()
    if core:
        code, text, errors = on_core(core, command, *words)
    elif inferior.pid == 0:
        raise gdb.GdbError('there is no process and no core file')
    else:
        kind = getattr(getattr(inferior, 'connection', None), 'type', 'native')
        code = NOT_PERMITTED
        if kind == 'native' and not exact:
            code, text, errors = call(command, str(inferior.pid), *words)
        if code == NOT_PERMITTED:
            code, text, errors = on_snapshot(command, *words)
    if code:
        raise gdb.GdbError(errors.strip())
    return text + errors


def part(text, title):
    """The part of lanemm's tables whose first line has the title, or the last one."""
    parts = text.split('\n\n')
    return next((each for each in parts if title in each.split('\n')[0]), parts[-1]).rstrip() + '\n'


def address_of(argument):
    if not argument:
        raise gdb.GdbError('an expression is missing')
    value = gdb.parse_and_eval(argument)
    code = value.type.strip_typedefs().code
    place = int(value) if code in (gdb.TYPE_CODE_PTR, gdb.TYPE_CODE_INT) else data_of(value)
    return '--at=%#x' % (place & 0xFFFFFFFFFFFFFFFF)


def without_head(text):
    """Without the line on the process that a core file begins with."""
    return re.sub(r'^process \d+, .*\n', '', text)


COMMANDS = {
    'at': ('EXPR: the block there, its class and size, where it was allocated and freed',
           lambda argument: without_head(ask('state', address_of(argument)))),
    'who': ('EXPR: the same, and what holds the address of that block',
            lambda argument: without_head(ask('state', address_of(argument), '--holders'))),
    'why': ('EXPR: the shortest way from a variable to the block there',
            lambda argument: ask('why', address_of(argument)[len('--at='):])),
    'classes': ('the blocks in use by what they hold',
                lambda _: part(ask('state', '--contents'), ' contents')),
    'leaks': ('blocks in use that nothing points to; of a process by a core file that gdb writes',
              lambda _: ask('report', 'leaks', exact=True)),
    'check': ('looks for damage of the heap',
              lambda _: part(ask('state', '--damage'), 'damage:')),
    'threads': ('which thread waits for which, deadlocks first',
                lambda _: ask('report', 'threads')),
}


class Command(gdb.Command):
    def __init__(self, name):
        self.__doc__, self.run = COMMANDS[name]
        gdb.Command.__init__(self, 'lanemm ' + name, gdb.COMMAND_DATA,
                             gdb.COMPLETE_EXPRESSION if name in ('at', 'who', 'why') else gdb.COMPLETE_NONE)

    def invoke(self, argument, from_tty):
        gdb.write(self.run(argument))


class Prefix(gdb.Command):
    """The heap of LaneMM; `help lanemm` lists the commands."""

    def __init__(self):
        gdb.Command.__init__(self, 'lanemm', gdb.COMMAND_DATA, gdb.COMPLETE_COMMAND, True)


Prefix()
for each_name in COMMANDS:
    Command(each_name)
