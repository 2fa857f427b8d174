/// A process that does not run on LaneMM and has a status page of its own making, for the tests of
/// lanemm: it answers each request with the first argument, in which `|` ends a line; with `endless`
/// to the end of the page; `other`: what it shares is no page, `version`: it is of an odd version,
/// `parents`: it has the totals of another process, as that of a child before it makes one; `silent`:
/// it gives no answer.
program Hostile;

{$mode delphi}{$H+}

uses
  Ipc, SysUtils, LaneMM.StatusPage;

var
  Page: PStatusPage;
  Text: string;
  Segment: LongInt;

procedure Answer;
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
end;

begin
  Text := ParamStr(1).Replace('|', #10);
  Segment := shmget(IPC_PRIVATE, PageBytes, IPC_CREAT or &600);
  Page := shmat(Segment, nil, 0);
  shmctl(Segment, IPC_RMID, nil);
  FillHead;
  if Text = 'endless' then
    Text := StringOfChar('x', PageBytes - (PByte(@Page^.Mailbox.Answer) - PByte(Page)))
  else if Text = 'other' then
    FillChar(Page^, PageBytes, 1)
  else if Text = 'version' then
  begin
    Page^.Head.Layout := PageLayout + 1;
    FillChar(Page^.Head.Version, SizeOf(Page^.Head.Version), #27);
  end
  else if Text = 'parents' then
  begin
    Page^.Head.ProcessId := 1;
    Page^.Totals.UsedBytes := 12345;
    Page^.Totals.Count := 1;
  end;
  WriteLn('ready 1');
  Flush(Output);
  while True do
  begin
    Sleep(1);
    if (Page^.Mailbox.Requested.Room <> Page^.Mailbox.Answered.Room) and (Text <> 'silent') then
      Answer;
  end;
end.
