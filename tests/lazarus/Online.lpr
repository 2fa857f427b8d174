/// Has the Online Package Manager of Lazarus read a description of packages, with its own unit.
///
///   Online DESCRIPTION FOLDER
///
/// Prints name, folder, file, its version, its type and its folder of each package, a line for each value; exit
/// code 1 with the manager's reason if it refuses the description. FOLDER gets the manager's settings.
program Online;

{$mode objfpc}{$H+}

uses
  cthreads, Interfaces, Classes, SysUtils, LazIDEIntf, MacroIntf, opkman_options, opkman_serializablepackages;

type
  /// The manager asks the IDE for two things: the folder of its settings,
  TSettings = class(TLazIDEInterface)
  public
    class function GetPrimaryConfigPath: string; override;
  end;

  /// and for names with their macros replaced.
  TMacros = class(TIDEMacros)
  public
    function SubstituteMacros(var Name: string): Boolean; override;
  end;

class function TSettings.GetPrimaryConfigPath: string;
begin
  Result := ParamStr(2);
end;

function TMacros.SubstituteMacros(var Name: string): Boolean;
begin
  Result := True;
end;

function Contents(const FileName: string): string;
var
  Lines: TStringList;
begin
  Lines := TStringList.Create;
  Lines.LoadFromFile(FileName);
  Result := Lines.Text;
  Lines.Free;
end;

procedure Write(Package: TMetaPackage);
var
  Entry: TCollectionItem;
  Part: TLazarusPackage;
begin
  WriteLn(Package.Name);
  WriteLn(Package.PackageBaseDir);
  WriteLn(Package.DownloadURL);
  for Entry in Package.LazarusPackages do
  begin
    Part := Entry as TLazarusPackage;
    WriteLn(Part.Name);
    WriteLn(Part.VersionAsString);
    WriteLn(Part.PackageType);
    WriteLn(Part.PackageRelativePath);
  end;
end;

var
  Packages: TSerializablePackages;
  I: Integer;
begin
  LazarusIDE := TSettings.Create(nil);
  IDEMacros := TMacros.Create;
  Options := TOptions.Create(ParamStr(2) + '/options.xml');
  Packages := TSerializablePackages.Create;
  if not Packages.AddPackageFromJSON(Contents(ParamStr(1))) then
  begin
    WriteLn('refused: ', Packages.LastError);
    Halt(1);
  end;
  for I := 0 to Packages.Count - 1 do
    Write(Packages.Items[I]);
end.
