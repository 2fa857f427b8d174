/// A program that does nothing: its system calls are those of the start and the end.
program Quiet;

uses
  LaneMM;

begin
end.
