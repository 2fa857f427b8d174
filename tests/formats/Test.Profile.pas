/// Tests of LaneMM.Profile, LaneMM.Sampler and the formats, on a program with known amounts.
unit Test.Profile;

{$mode delphi}{$H+}

interface

uses
  Test.Cases;

type
  TProfileTests = class(TProgramTest)
  strict private
    procedure Near(Count, Size: Integer; const Name: string);
  protected
    procedure Act(const Word, Rest: string); override;
    function Number(const Name: string): Int64; override;
    function Value(const Name: string): string; override;
  end;

implementation

uses
  SysUtils, StrUtils, Math, fpjson, jsonparser, Test.Tools, LaneMM;

// A value of all samples whose stack has the routine, out of a file of speedscope.
function ValueOf(const Text, ValueName, Routine: string): Double;
var
  All: TJSONData;
  Values: TJSONObject;
  Index, Frame: Integer;
  Stack: TJSONArray;
begin
  Result := 0;
  All := GetJSON(Text);
  try
    for Index := 0 to All.FindPath('profiles').Count - 1 do
      if TJSONArray(All.FindPath('profiles')).Objects[Index].Strings['name'] = ValueName then
        Values := TJSONArray(All.FindPath('profiles')).Objects[Index];
    for Index := 0 to Values.Arrays['samples'].Count - 1 do
    begin
      Stack := Values.Arrays['samples'].Arrays[Index];
      for Frame := 0 to Stack.Count - 1 do
        if All.FindPath(Format('shared.frames[%d].name', [Stack.Integers[Frame]])).AsString
          = 'WATCHSAMPLES.' + Routine then
          Result := Result + Values.Arrays['weights'].Floats[Index];
    end;
  finally
    All.Free;
  end;
end;

// A block of Size bytes is sampled with probability Share = 1 - exp(-Size / Rate), independently
// of the others, and then stands for 1 / Share blocks. So the estimate of Count blocks has the
// variance Count * (1 - Share) / Share; random rounding adds at most a quarter for each sampled
// block.
procedure TProfileTests.Near(Count, Size: Integer; const Name: string);
const
  Rate = 4096;
  // One wrong alarm in two million seeds.
  Deviations = 5;
var
  Unit_, Share, Sigma: Double;
begin
  Inc(AssertCount);
  Unit_ := IfThen(Pos('_space', Name) > 0, Size, 1);
  Share := 1 - Exp(-Size / Rate);
  Sigma := Sqrt(Count * (1 - Share) / Share * Sqr(Unit_) + Count * Share / 4);
  if Abs(Number(Name) - Count * Unit_) > Deviations * Sigma then
    Fail('%s, seed %d: expected %.0f with a standard deviation of %.0f, found %d', [Name, TestSeed,
      Count * Unit_, Sigma, Number(Name)]);
end;

procedure TProfileTests.Act(const Word, Rest: string);
begin
  if Word = 'near' then
    Near(StrToInt(Rest.Split([' '])[0]), StrToInt(Rest.Split([' '])[1]), Rest.Split([' '])[2])
  else
    inherited Act(Word, Rest);
end;

function TProfileTests.Number(const Name: string): Int64;
begin
  if Pos(':', Name) > 0 then
    Result := Round(ValueOf(Output, Name.Split([':'])[0], Name.Split([':'])[1]))
  else
    Result := inherited Number(Name);
end;

function TProfileTests.Value(const Name: string): string;
begin
  if Name = 'version' then
    Result := LaneMM_Version
  else
    Result := inherited Value(Name);
end;

initialization
  RegisterCases(TProfileTests, 'formats/Profile');
end.
