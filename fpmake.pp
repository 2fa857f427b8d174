// Builds and installs the units of LaneMM with Free Pascal's own tools:
//
//   fppkg install
//   fpc fpmake.pp && ./fpmake install --globalunitdir=UNITS/.. --prefix=DIR
//
// UNITS/.. is the folder with the compiler's own `units`. A program then names LaneMM first in its uses clause, or is
// compiled with -FaLaneMM.
program fpmake;

{$mode objfpc}{$H+}

uses
  {$ifdef UNIX} cthreads, {$endif} SysUtils, fpmkunit;

procedure AddFolder(P: TPackage; const Folder: string);
var
  Found: TSearchRec;
begin
  P.SourcePath.Add(Folder);
  P.IncludePath.Add(Folder);
  if FindFirst(Folder + '/*.pas', faAnyFile, Found) <> 0 then
    raise Exception.Create(Folder + ' has no units: run fpmake in the folder of fpmake.pp');
  repeat
    P.Targets.AddUnit(Folder + '/' + Found.Name);
  until FindNext(Found) <> 0;
  FindClose(Found);
end;

// Adds the rooms, all folders of src with units.
procedure AddRooms(P: TPackage);
var
  Found: TSearchRec;
begin
  if FindFirst('src/*', faDirectory, Found) = 0 then
    repeat
      if (Found.Attr and faDirectory <> 0) and (Found.Name[1] <> '.') and (Found.Name <> 'door') then
        AddFolder(P, 'src/' + Found.Name);
    until FindNext(Found) <> 0;
  FindClose(Found);
end;

var
  P: TPackage;

begin
  P := Installer.AddPackage('lanemm');
  P.Version := '1.0.0';
  P.License := 'MIT';
  P.Description := 'Memory manager that stays fast when many threads allocate.';
  P.OSes := [linux, win64];
  P.CPUs := [x86_64, i386, aarch64];
  P.Options.Add('-O3');
  if Defaults.OS = linux then
    P.Options.Add('-Cg'); // for libraries, too
  AddRooms(P);
  AddFolder(P, 'src');
  Installer.Run;
end.
