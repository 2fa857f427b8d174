/// What the linter found, and the rules it knows.
unit LintReport;

{$mode delphi}{$H+}

interface

uses
  Classes;

type
  /// One rule of the house style. A rule passes when no finding belongs to it.
  TRule = (
    ruRooms, ruCycles, ruClosure, ruUnusedUnits, ruUnusedRoutines, ruTestRoutines, ruConstants,
    ruNames, ruVocabulary, ruUnitSize, ruRoutineLength, ruColumns, ruWords, ruAtomics, ruConditionals,
    ruAssembler, ruNesting, ruFieldTags, ruDocumentation,
    ruTrailingBlanks, ruTabs, ruLineEnds, ruMachinePaths, ruBuiltFiles, ruCommits);

  /// Collects findings as lines `file:line: message`.
  TReport = class
  private
    Findings: TStringList;
    FindingsOf: array[TRule] of Integer;
  public
    /// Files looked at so far.
    FileCount: Integer;
    constructor Create;
    destructor Destroy; override;
    /// Adds a finding; Line counts from 1.
    procedure Add(Rule: TRule; const FileName: string; Line: Integer; const Message: string);
    /// Adds a finding of ruCommits.
    procedure AddCommit(const Hash, Message: string);
    /// Writes the findings and the counts to the standard output.
    procedure Print;
    /// Returns True when there is no finding.
    function IsClean: Boolean;
  end;

implementation

uses
  SysUtils;

constructor TReport.Create;
begin
  inherited Create;
  Findings := TStringList.Create;
end;

destructor TReport.Destroy;
begin
  Findings.Free;
  inherited Destroy;
end;

procedure TReport.Add(Rule: TRule; const FileName: string; Line: Integer; const Message: string);
begin
  Findings.Add(Format('%s:%d: %s', [FileName, Line, Message]));
  Inc(FindingsOf[Rule]);
end;

procedure TReport.AddCommit(const Hash, Message: string);
begin
  Findings.Add(Format('commit %s: %s', [Hash, Message]));
  Inc(FindingsOf[ruCommits]);
end;

procedure TReport.Print;
var
  Rule: TRule;
  Finding: string;
  Passed, Failed: Integer;
begin
  Passed := 0;
  Failed := 0;
  for Rule := Low(TRule) to High(TRule) do
    if FindingsOf[Rule] = 0 then
      Inc(Passed)
    else
      Inc(Failed);
  for Finding in Findings do
    WriteLn(Finding);
  WriteLn(Format('lint: %d files, %d findings; of the rules', [FileCount, Findings.Count]));
  WriteLn(Format('%d passed, %d failed', [Passed, Failed]));
end;

function TReport.IsClean: Boolean;
begin
  Result := Findings.Count = 0;
end;

end.
