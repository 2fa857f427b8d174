/// A process that does not run on LaneMM and has a status page of its own making, for the tests of
/// lanemm: it answers each request with the first argument, in which `|` ends a line; with `endless`
/// to the end of the page; `cut`: the page has no bytes, `version`: it is of an odd version.
program Hostile;

{$mode delphi}{$H+}

uses
  BaseUnix, SysCall, SysUtils, LaneMM.StatusPage;

const
  MemoryFileCall = {$ifdef CPUAARCH64} 279 {$else} 319 {$endif};

var
  Page: PStatusPage;
  Text: string;
  Handle: LongInt;

procedure Answer(Signal: LongInt); cdecl;
begin
  Move(Text[1], Page^.Mailbox.Answer, Length(Text));
  Page^.Mailbox.Taken.Room := Page^.Mailbox.Requested.Room;
  Page^.Mailbox.Answered.Room := Page^.Mailbox.Requested.Room;
end;

procedure FillHead;
const
  Magic: PAnsiChar = PageMagic;
begin
  Move(Magic^, Page^.Head.Magic, SizeOf(Page^.Head.Magic));
  Page^.Head.Layout := PageLayout;
  Page^.Head.PointerBytes := SizeOf(Pointer);
  Page^.Head.ProcessId := GetProcessID;
  Page^.Head.HasMailbox := 1;
  Page^.Head.Signals[0] := SIGURG;
end;

begin
  Text := ParamStr(1).Replace('|', #10);
  Handle := do_syscall(MemoryFileCall, TSysParam(PAnsiChar(PageName)), 0);
  FpFtruncate(Handle, PageBytes);
  Page := Fpmmap(nil, PageBytes, PROT_READ or PROT_WRITE, MAP_SHARED, Handle, 0);
  FillHead;
  if Text = 'endless' then
    Text := StringOfChar('x', PageBytes - (PByte(@Page^.Mailbox.Answer) - PByte(Page)))
  else if Text = 'cut' then
    FpFtruncate(Handle, 0)
  else if Text = 'version' then
  begin
    Page^.Head.Layout := PageLayout + 1;
    FillChar(Page^.Head.Version, SizeOf(Page^.Head.Version), #27);
  end;
  fpSignal(SIGURG, Answer);
  WriteLn('ready 1');
  Flush(Output);
  while True do
    fpPause;
end.
