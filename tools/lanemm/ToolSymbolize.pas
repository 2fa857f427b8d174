/// `lanemm symbolize`: names and lines for the frames of a log that has modules and offsets alone.
unit ToolSymbolize;

{$mode delphi}{$H+}

interface

uses
  ToolCommands;

/// Writes the log with routine and line behind each `module+0xOFFSET`.
procedure RunSymbolize(Arguments: TArguments);

const
  SymbolizeCommand: TCommand = (
    Name: 'symbolize';
    Usage: 'LOG [FILE|FOLDER...]';
    Help: 'Names routines and lines in a log of a program without debug information';
    Details: 'A frame `server+0x1f3a0` gets its routine and line from the file server.dbg,'#10
      + 'server.debug or server with debug information: one of the FILEs, or in a FOLDER, beside'#10
      + 'the log, or here. If the module is there, too, the file must be of the same build. With `-`'#10
      + 'the log is read from stdin. Frames of modules that are not found stay as they are.'#10;
    Options: '';
    MostWords: AnyWords;
    Run: RunSymbolize);

implementation

uses
  SysUtils, Classes, FrameNames;

procedure ReadLog(const FileName: string; Lines: TStrings);
var
  Line: string;
begin
  if FileName <> '-' then
  begin
    if not FileExists(FileName) then
      raise ETool.Create(ecFailed, 'there is no file %s', [FileName]);
    Lines.LoadFromFile(FileName);
    Exit;
  end;
  while not Eof(Input) do
  begin
    ReadLn(Input, Line);
    Lines.Add(Line);
  end;
end;

procedure RunSymbolize(Arguments: TArguments);
var
  Lines: TStringList;
  Names: TFrameNames;
  Line: string;
begin
  Lines := TStringList.Create;
  Names := TFrameNames.Create;
  try
    ReadLog(Arguments.Word(0, 'LOG'), Lines);
    Names.AddPlaces(Arguments);
    Names.Places.Add(ExtractFilePath(Arguments.Words[0]));
    Names.Places.Add('');
    for Line in Lines do
      Names.Add(Line);
    Names.Resolve;
    for Line in Lines do
      WriteLn(Names.Named(Line));
  finally
    Names.Free;
    Lines.Free;
  end;
end;

end.
