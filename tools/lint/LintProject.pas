/// All Pascal files of the repository: units, programs and their include files.
unit LintProject;

{$mode delphi}{$H+}

interface

uses
  Classes, Generics.Collections, LintDeclarations, LintSource, LintTokens;

type
  /// A unit or a program with its include files.
  TModule = class
  private
    KnownDeclarations: TDeclarations;
    KnownWords: TWordSet;
  public
    Source: TSource;
    /// Source and the files it includes, directly or not.
    Parts: TList<TSource>;
    constructor Create(Main: TSource);
    destructor Destroy; override;
    function Declarations: TDeclarations;
    /// The words in the code of all parts.
    function Words: TWordSet;
    /// Lines with code in all parts.
    function CodeLineCount: Integer;
  end;

  /// The Pascal files below src/, lib/ and the directories of tests and programs.
  TProject = class
  private
    SourceOf: TDictionary<string, TSource>;
    ModuleOf: TDictionary<string, TModule>;
    procedure Load(const Root, Pattern: string; Files: TStrings);
    procedure AddParts(Module: TModule; Source: TSource);
  public
    /// In the order of their file names, src/ and lib/ first.
    Sources: TObjectList<TSource>;
    Modules: TObjectList<TModule>;
    constructor Create(const Root: string; Files: TStrings);
    destructor Destroy; override;
    /// The unit or program of this name; nil when there is none.
    function Find(const Name: string): TModule;
  end;

/// Returns True for a file of the product: below src/ or lib/.
function IsProduct(const FileName: string): Boolean;

implementation

uses
  SysUtils, StrUtils, LintPatterns;

const
  ProductPattern = '^(src|lib)/.*\.(pas|inc)$';
  OtherPattern = '^(tests|demos|bench|tools)/.*\.(pas|pp|lpr|dpr|inc)$';
  // Its units only include those of src/: second units of the same names, without a line of their own.
  SecondDoors = 'src/door/';

function IsProduct(const FileName: string): Boolean;
begin
  Result := Matches(ProductPattern, FileName);
end;

// ---------------------------------------------------------------------------- TModule

constructor TModule.Create(Main: TSource);
begin
  inherited Create;
  Source := Main;
  Parts := TList<TSource>.Create;
end;

destructor TModule.Destroy;
begin
  KnownWords.Free;
  KnownDeclarations.Free;
  Parts.Free;
  inherited Destroy;
end;

function TModule.Declarations: TDeclarations;
begin
  if KnownDeclarations = nil then
    KnownDeclarations := TDeclarations.Create(Source);
  Result := KnownDeclarations;
end;

function TModule.Words: TWordSet;
var
  Part: TSource;
begin
  if KnownWords = nil then
  begin
    KnownWords := TWordSet.Create;
    for Part in Parts do
      KnownWords.AddAll(Part.Words);
  end;
  Result := KnownWords;
end;

function TModule.CodeLineCount: Integer;
var
  Part: TSource;
begin
  Result := 0;
  for Part in Parts do
    Inc(Result, Part.CodeLineCount);
end;

// ---------------------------------------------------------------------------- TProject

constructor TProject.Create(const Root: string; Files: TStrings);
var
  Source: TSource;
  Module: TModule;
begin
  inherited Create;
  Sources := TObjectList<TSource>.Create;
  Modules := TObjectList<TModule>.Create;
  SourceOf := TDictionary<string, TSource>.Create;
  ModuleOf := TDictionary<string, TModule>.Create;
  Load(Root, ProductPattern, Files);
  Load(Root, OtherPattern, Files);
  for Source in Sources do
    if not Source.IsInclude then
    begin
      Module := TModule.Create(Source);
      AddParts(Module, Source);
      Modules.Add(Module);
      if Find(Source.Name) = nil then
        ModuleOf.Add(LowerCase(Source.Name), Module);
    end;
end;

destructor TProject.Destroy;
begin
  ModuleOf.Free;
  SourceOf.Free;
  Modules.Free;
  Sources.Free;
  inherited Destroy;
end;

procedure TProject.Load(const Root, Pattern: string; Files: TStrings);
var
  FileName: string;
  Source: TSource;
begin
  for FileName in Files do
    if Matches(Pattern, FileName) and not StartsStr(SecondDoors, FileName) then
    begin
      Source := TSource.Create(Root + FileName, FileName);
      Sources.Add(Source);
      SourceOf.Add(FileName, Source);
    end;
end;

procedure TProject.AddParts(Module: TModule; Source: TSource);
var
  Included, Directory: string;
  Part: TSource;
begin
  Module.Parts.Add(Source);
  Directory := '/' + ExtractFilePath(Source.FileName);
  for Included in Source.Includes do
    if SourceOf.TryGetValue(Copy(ExpandFileName(Directory + Included), 2), Part)
      and not Module.Parts.Contains(Part) then
      AddParts(Module, Part);
end;

function TProject.Find(const Name: string): TModule;
begin
  if not ModuleOf.TryGetValue(LowerCase(Name), Result) then
    Result := nil;
end;

end.
