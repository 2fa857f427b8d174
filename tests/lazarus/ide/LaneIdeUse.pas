/// Uses the window of LaneMM as a user does: for WindowTest, without the IDE, and LaneIdeDriver, in it.
//
// Callers: the thread of the user interface.
unit LaneIdeUse;

{$mode objfpc}{$H+}

interface

uses
  LCLType;

type
  TCondition = function: Boolean;

/// Lets the program handle what has happened.
procedure Pause(Ms: Integer);
/// Waits until it is met, a minute at most.
procedure Await(IsMet: TCondition);
/// Writes what a window, or for 0 the screen, shows to a file.
procedure SavePicture(Handle: HWND; const FileName: string);

implementation

uses
  SysUtils, Forms, Graphics, LCLIntf;

const
  MostMs = 60000;

procedure Pause(Ms: Integer);
var
  Start: QWord;
begin
  Start := GetTickCount64;
  repeat
    Application.ProcessMessages;
    Sleep(5);
  until GetTickCount64 - Start >= Ms;
end;

procedure Await(IsMet: TCondition);
var
  Start: QWord;
begin
  Start := GetTickCount64;
  while not IsMet() and (GetTickCount64 - Start < MostMs) do
    Pause(0);
end;

procedure SavePicture(Handle: HWND; const FileName: string);
var
  Bitmap: TBitmap;
  Png: TPortableNetworkGraphic;
  Device: HDC;
begin
  Bitmap := TBitmap.Create;
  Png := TPortableNetworkGraphic.Create;
  Device := GetDC(Handle);
  try
    Bitmap.LoadFromDevice(Device);
    Png.Assign(Bitmap);
    Png.SaveToFile(FileName);
  finally
    ReleaseDC(Handle, Device);
    Png.Free;
    Bitmap.Free;
  end;
end;

end.
