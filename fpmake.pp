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

const
  // In the order in which they use each other.
  Folders: array[0..9] of string = ('src/core', 'src/report', 'src/settings', 'src/stacks',
    'src/observe', 'src/debug', 'src/leaks', 'src/control', 'src', 'src/compat');

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

var
  P: TPackage;
  Folder: string;

begin
  P := Installer.AddPackage('lanemm');
  P.Version := '1.0.0-rc1';
  P.License := 'MIT';
  P.Description := 'Memory manager that stays fast when many threads allocate.';
  P.OSes := [linux, win64];
  P.CPUs := [x86_64, i386, aarch64];
  P.Options.Add('-O3');
  for Folder in Folders do
    AddFolder(P, Folder);
  Installer.Run;
end.
