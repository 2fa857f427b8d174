/// Three ways to make a record of strings; the third one forgets Initialize.
//
// GetMem returns uninitialised memory: the record holds four wild string pointers, and the
// first assignment releases a string that never existed.
program InitializeFinalize;

{$mode delphi}{$H+}

uses
  SysUtils, Demo.Options, Demo.Report;

const
  Usage =
    'Makes a record of four strings in three ways. The first two must print 42, the third,'#10 +
    'GetMem without Initialize, must fail. Exit code 0 if that happened, else 1.'#10;
  Dirt = $80; // a pointer of such bytes leads to no memory, in any process

type
  PRecord = ^TRecord;
  TRecord = record
    First, Second, Third, Fourth: string;
  end;

/// Writes the strings, last one first, and returns the answer that they hold.
/// A free block may hold words of its manager at the start; its end is as dirty as before.
function Answer(Data: PRecord): string;
begin
  Data^.Fourth := IntToStr(2);
  Data^.Third := IntToStr(4);
  Data^.Second := Data^.Third + Data^.Fourth;
  Data^.First := Data^.Second;
  Result := Data^.First;
end;

function WithNew: string;
var
  Data: PRecord;
begin
  New(Data);
  Result := Answer(Data);
  Dispose(Data);
end;

function WithInitialize: string;
var
  Data: PRecord;
begin
  GetMem(Data, SizeOf(TRecord));
  Initialize(Data^);
  Result := Answer(Data);
  Finalize(Data^);
  FreeMem(Data);
end;

function WithGetMemOnly: string;
var
  Dirty: Pointer;
  Data: PRecord;
begin
  GetMem(Dirty, SizeOf(TRecord));
  FillChar(Dirty^, SizeOf(TRecord), Dirt);
  FreeMem(Dirty);
  GetMem(Data, SizeOf(TRecord)); // most likely the same block, still dirty
  ReportText('GetMem returns %s; the last string points to $%x', [BoolToStr(Data = Dirty,
    'the dirty block that was freed last', 'another block'), NativeUInt(Data^.Fourth)]);
  ReportValue('same_block', Ord(Data = Dirty));
  try
    Result := Answer(Data);
  except
    on Failure: Exception do
      Result := Failure.ClassName;
  end;
  FreeMem(Data); // without Finalize: these are no strings
end;

procedure Show(const Key, Title, Got: string; AsExpected: Boolean);
begin
  ReportText('%-41s%-18s%s', [Title, Got, BoolToStr(AsExpected, 'as expected', 'NOT EXPECTED')]);
  ReportValue(Key + '.as_expected', Ord(AsExpected));
  if not AsExpected then
    ExitCode := 1;
end;

var
  Got: string;
begin
  OptionsRead(Usage, []);
  ReportTitle('a record of four strings');
  Got := WithNew;
  Show('new', 'New, Dispose', Got, Got = '42');
  Got := WithInitialize;
  Show('initialize', 'GetMem, Initialize, Finalize, FreeMem', Got, Got = '42');
  Got := WithGetMemOnly;
  Show('getmem', 'GetMem alone', Got, Got <> '42');
end.
