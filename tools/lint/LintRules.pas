/// The rules for one file in src/: sizes, words, the places of conditionals and assembler,
/// the tags of record fields and the comments of declarations.
unit LintRules;

{$mode delphi}{$H+}

interface

uses
  LintReport, LintSource;

/// Checks all rules that need to see one file only.
procedure CheckSource(Source: TSource; Report: TReport);

implementation

uses
  SysUtils, StrUtils, RegExpr, LintPatterns, LintRooms;

const
  MaxUnitLines = 600;
  // Files that may have MaxLongLines: the door, the records of all threads, one system's half of an
  // interface, and what was not yet cut where a reader would.
  LongFiles = '/LaneMM(\.(Types|Arena|Shards|Heap|Debug|Snapshot|Unwind|Inlined|X86Code|EventLog'
    + '|Watch|Os\.(Linux|Windows)))?\.(pas|inc)$';
  MaxLongLines = 800;
  MaxRoutineLines = 60;
  MaxColumns = 100;

  // LaneMM runs inside GetMem, before every initialization and after every finalization.
  ForbiddenWords = '(\b(SysUtils|Classes|string|AnsiString|UnicodeString|WideString|RawByteString'
    + '|Variant|class|Exception|try|except|finally|raise|WriteLn|Write|ReadLn|Assert|with|goto'
    + '|label|operator|generic|specialize|array\s+of)\b|=\s*interface\b)';
  OverloadUnit = 'LaneMM.Atomic';

  AtomicUnit = 'LaneMM.Atomic';
  AtomicWords = '\b(Interlocked\w+|Atomic(Exchange|CmpExchange|Increment|Decrement)'
    + '|(Read|Write|ReadWrite|Read_?Dependency|Memory)Barrier)\b';

  ConditionalUnits = '^LaneMM\.(Layout|Types|Atomic|Bits|Os|OsFiles|OsGroup|OsProcess|OsSignals|OsThread|Errors|Rtl|RtlRecords|Pause|ReportStack)$';
  Conditional = '^\$if(def|ndef|opt)?\b';
  // The compiler checks the size of a record beside its declaration.
  SizeConditional = '^\$if SizeOf\b';
  // These select the assembler entries; the assembler itself is in an include file.
  EntryUnits = '^LaneMM\.(Blocks|Allocate|Free|Resize|Engine|Patterns|Hard)$';
  EntryConditional = '^\$ifn?def LANEMM_ASM\w*$';

  // The units that declare the records of a room: of core, and of the rooms above it.
  CoreTaggedUnits = '^LaneMM\.(Types|Layout|Hooks)$';
  TaggedUnits = '(Types|State)$';
  Field = '(^|[(;\s])[a-z_]\w*(\s*,\s*[a-z_]\w*)*\s*:([^=]|$)';
  Tag = '//<\s+(const|owner|shared|padding)\b';
  LockTag = '//<\s+lock [A-Z]\w*( or [A-Z]\w*)*\b';
  RacyTag = '//<\s+racy\s+\S';

  RoutineHeader = '^(procedure|function|constructor|destructor)\b';

procedure CheckSizes(Source: TSource; Report: TReport);
var
  Line, Most: Integer;
begin
  Most := MaxUnitLines;
  if Matches(LongFiles, Source.FileName) then
    Most := MaxLongLines;
  if Source.LineCount > Most then
    Report.Add(ruUnitSize, Source.FileName, Source.LineCount,
      Format('%d lines, more than %d', [Source.LineCount, Most]));
  for Line := 1 to Source.LineCount do
    if Length(UTF8Decode(Source.Raw[Line])) > MaxColumns then
      Report.Add(ruColumns, Source.FileName, Line, Format('longer than %d columns', [MaxColumns]));
end;

// A routine goes from its header in column 1 to the next `end;` in column 1; a header that
// another one follows has no body. What a script has made may be longer: the lengths of its source count.
procedure CheckRoutines(Source: TSource; Report: TReport);
var
  Line, Start: Integer;
  IsMade: Boolean;
begin
  IsMade := Matches('^// Made of ', Source.Raw[1]);
  Start := 0;
  for Line := 1 to Source.LineCount do
  begin
    if Matches('^\s+(procedure|function)\b', Source.Code[Line]) then
      Report.Add(ruNesting, Source.FileName, Line, 'nested routine or method');
    if Matches(RoutineHeader, Source.Code[Line]) then
      Start := Line;
    if (Start = 0) or not Matches('^end;', Source.Code[Line]) then
      Continue;
    if (Line - Start + 1 > MaxRoutineLines) and not IsMade then
      Report.Add(ruRoutineLength, Source.FileName, Start,
        Format('routine of %d lines, more than %d', [Line - Start + 1, MaxRoutineLines]));
    Start := 0;
  end;
end;

procedure CheckWords(Source: TSource; Report: TReport);
var
  Line: Integer;
  Word: string;
begin
  for Line := 1 to Source.LineCount do
  begin
    Word := FirstGroup(ForbiddenWords, Source.Code[Line]);
    if Word <> '' then
      Report.Add(ruWords, Source.FileName, Line, 'forbidden word: ' + Word);
    if (Source.Name <> OverloadUnit) and Matches('\boverload\b', Source.Code[Line]) then
      Report.Add(ruWords, Source.FileName, Line, 'forbidden word: overload');
    Word := FirstGroup(AtomicWords, Source.Code[Line]);
    if (Word <> '') and (Source.Name <> AtomicUnit) then
      Report.Add(ruAtomics, Source.FileName, Line, Word + ' outside ' + AtomicUnit);
  end;
end;

function IsAllowed(Source: TSource; const Directive: TDirective): Boolean;
begin
  Result := not Matches(Conditional, Directive.Text)
    or Matches(SizeConditional, Directive.Text)
    or Matches(EntryUnits, Source.Name) and Matches(EntryConditional, Directive.Text)
    or Source.InUsesClause(Directive.Line);
end;

procedure CheckConditionals(Source: TSource; Report: TReport);
var
  Directive: TDirective;
begin
  for Directive in Source.Directives do
    if not IsAllowed(Source, Directive) then
      Report.Add(ruConditionals, Source.FileName, Directive.Line,
        Directive.Text + ' is not allowed in this unit');
end;

procedure CheckAssembler(Source: TSource; Report: TReport);
var
  Line: Integer;
begin
  for Line := 1 to Source.LineCount do
    if Matches('\b(asm|assembler)\b', Source.Code[Line]) then
      Report.Add(ruAssembler, Source.FileName, Line, 'assembler is not allowed in this unit');
end;

function HasTag(const Line: string): Boolean;
begin
  Result := ExecRegExpr(Tag, Line) or ExecRegExpr(LockTag, Line) or ExecRegExpr(RacyTag, Line);
end;

procedure CheckTags(Source: TSource; Report: TReport);
var
  Line: Integer;
  InRecord: Boolean;
begin
  InRecord := False;
  for Line := 1 to Source.LineOf('implementation') do
    if Matches('\brecord\b', Source.Code[Line]) then
      InRecord := True
    else if Matches('^\s*end\b', Source.Code[Line]) then
      InRecord := False
    else if InRecord and Matches(Field, Source.Code[Line]) and not HasTag(Source.Raw[Line]) then
      Report.Add(ruFieldTags, Source.FileName, Line,
        'field without //< const, owner, shared, lock X, racy and why, or padding');
end;

function IsTagged(Source: TSource): Boolean;
begin
  if RoomOf(Source.FileName) = 'core' then
    Result := Matches(CoreTaggedUnits, Source.Name)
  else
    Result := (RoomOf(Source.FileName) <> '') and Matches(TaggedUnits, Source.Name);
end;

// ---------------------------------------------------------------------------- documentation

// Whether a `///` comment stands above Line; lines with nothing but directives do not count.
function IsDocumented(Source: TSource; Line: Integer): Boolean;
begin
  repeat
    Dec(Line);
  until (Line = 0) or not StartsStr('{$', Trim(Source.Raw[Line]));
  Result := (Line > 0) and StartsStr('///', TrimLeft(Source.Raw[Line]));
end;

procedure CheckDocumentation(Source: TSource; Report: TReport);
const
  Declaration = '^  [a-z_]\w*(\s*,\s*[a-z_]\w*)*\s*[:=]';
  PointerType = '^  \w+\s*=\s*\^';
var
  Line: Integer;
  Section: string;
  IsGroup: Boolean; // constants or variables that follow a documented one without a blank line
begin
  Section := '';
  IsGroup := False;
  for Line := Source.LineOf('interface') to Source.LineOf('implementation') do
  begin
    if Matches('^[a-z]', Source.Code[Line]) then
      Section := FirstGroup('^(\w+)', Source.Code[Line]);
    if Source.Raw[Line] = '' then
      IsGroup := False;
    if Matches(RoutineHeader, Source.Code[Line])
      or Matches('^(const|var|type|threadvar)$', Section)
        and Matches(Declaration, Source.Code[Line])
        and not Matches(PointerType, Source.Code[Line]) then
      if IsDocumented(Source, Line) then
        IsGroup := Matches('^(const|var)$', Section)
      else if not IsGroup then
        Report.Add(ruDocumentation, Source.FileName, Line, 'declaration without a /// comment');
  end;
  if not StartsStr('///', Source.Raw[1]) then
    Report.Add(ruDocumentation, Source.FileName, 1, 'unit without a /// comment in its first line');
end;

procedure CheckSource(Source: TSource; Report: TReport);
begin
  CheckSizes(Source, Report);
  CheckRoutines(Source, Report);
  CheckWords(Source, Report);
  if IsTagged(Source) then
    CheckTags(Source, Report);
  if Source.IsInclude then
    Exit;
  CheckDocumentation(Source, Report);
  if Matches(ConditionalUnits, Source.Name) then
    Exit;
  CheckConditionals(Source, Report);
  CheckAssembler(Source, Report);
end;

end.
