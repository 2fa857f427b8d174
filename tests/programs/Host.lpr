/// A program that loads a library with a copy of LaneMM of its own; blocks cross both ways.
program Host;

{$mode delphi}{$pointermath on}

uses
  {$ifdef LEAN} LaneMMLean, {$else} LaneMM, {$endif} cthreads, SysUtils, Dynlibs, Promises;

const
  LoadCount = 20;

var
  Guest: TLibHandle;
  GuestGet: function(Size: NativeUInt): Pointer; cdecl;
  GuestFree: function(P: Pointer): LongInt; cdecl;
  GuestResize: function(P: Pointer; Size: NativeUInt): Pointer; cdecl;
  GuestSize: function(P: Pointer): NativeUInt; cdecl;
  GuestUsed: function: NativeUInt; cdecl;
  MayEnd: PRTLEvent;
  HasCalled: PRTLEvent;

procedure Load;
begin
  Guest := LoadLibrary(ExtractFilePath(ParamStr(0))
    + {$ifdef MSWINDOWS} 'Guest.dll' {$else} 'libGuest.so' {$endif});
  Expect(Guest <> NilHandle, 'the library is loaded');
  if Guest = NilHandle then
    Finish;
  GuestGet := GetProcedureAddress(Guest, 'GuestGet');
  GuestFree := GetProcedureAddress(Guest, 'GuestFree');
  GuestResize := GetProcedureAddress(Guest, 'GuestResize');
  GuestSize := GetProcedureAddress(Guest, 'GuestSize');
  GuestUsed := GetProcedureAddress(Guest, 'GuestUsed');
end;

procedure CrossBothWays(Size: NativeUInt);
var
  P: PByte;
begin
  P := FilledBlock(Size, 1);
  Expect(GuestSize(P) >= Size, 'the guest measures a block of the host');
  Expect(GuestFree(P) = 0, 'the guest frees a block of the host');
  P := GuestGet(Size);
  Fill(P, Size, 2);
  Expect(MemSize(P) >= Size, 'the host measures a block of the guest');
  Expect(IsFilled(P, Size, 2), 'the block is what it was');
  FreeMem(P);
end;

procedure ResizeBothWays(Size, NewSize: NativeUInt);
var
  P: PByte;
  Kept: NativeUInt;
begin
  Kept := Size;
  if NewSize < Size then
    Kept := NewSize and not 7;
  P := GuestResize(FilledBlock(Size, 3), NewSize);
  Expect(IsFilled(P, Kept, 3), 'the guest resizes a block of the host');
  FreeMem(P);
  P := GuestGet(Size);
  Fill(P, Size, 4);
  ReallocMem(P, NewSize);
  Expect(IsFilled(P, Kept, 4), 'the host resizes a block of the guest');
  Expect(GuestFree(P) = 0, 'and the guest frees it');
end;

procedure RefuseBothWays(Size: NativeUInt);
var
  P: Pointer;
begin
  P := FilledBlock(Size, 5);
  FreeMem(P);
  Expect(GuestFree(P) = 204, 'the guest refuses a freed block of the host');
  P := GuestGet(Size);
  GuestFree(P);
  try
    FreeMem(P);
    Expect(False, 'the host refuses a freed block of the guest');
  except
    on EInvalidPointer do;
  end;
  Expect(GuestFree(@Guest) = 204, 'the guest refuses what nobody knows');
end;

procedure CrossAll;
var
  Index, Other: Integer;
begin
  for Index := 0 to High(SampleSizes) do
  begin
    CrossBothWays(SampleSizes[Index]);
    RefuseBothWays(SampleSizes[Index]);
    for Other := 1 to High(SampleSizes) do
      ResizeBothWays(SampleSizes[Index], SampleSizes[Other]);
  end;
end;

function CrossInThread(Unused: Pointer): PtrInt;
begin
  CrossAll;
  Result := 0;
end;

// A thread that has used the guest and outlives it.
function Outlive(Unused: Pointer): PtrInt;
begin
  FreeMem(GuestGet(100));
  RTLEventSetEvent(HasCalled);
  RTLEventWaitFor(MayEnd);
  FreeMem(FilledBlock(100, 1));
  Result := 0;
end;

procedure LoadUseAndUnload;
var
  Before, GuestBefore: NativeUInt;
  Survivor: TThreadID;
begin
  Load;
  CrossAll;
  Before := LaneMM_HeapStatus.UsedBytes;
  GuestBefore := GuestUsed;
  CrossAll;
  WaitForThreadTerminate(BeginThread(CrossInThread, nil), 0);
  Expect(LaneMM_HeapStatus.UsedBytes = Before, 'all blocks of the host are back');
  Expect(GuestUsed = GuestBefore, 'all blocks of the guest are back');
  Survivor := BeginThread(Outlive, nil);
  RTLEventWaitFor(HasCalled);
  Expect(UnloadLibrary(Guest), 'the library is unloaded');
  RTLEventSetEvent(MayEnd);
  WaitForThreadTerminate(Survivor, 0);
end;

var
  Index: Integer;
  P: PByte;
begin
  MayEnd := RTLEventCreate;
  HasCalled := RTLEventCreate;
  P := FilledBlock(1000, 9);
  for Index := 1 to LoadCount do
    LoadUseAndUnload;
  Expect(IsFilled(P, 1000, 9), 'a block of the host is what it was');
  FreeMem(P);
  Finish;
end.
