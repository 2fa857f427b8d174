/// Hello world, for what LaneMM adds to a program: -dFULL with LaneMM, -dLEAN with LaneMMLean,
/// -dTHREADS with the thread library, -dWAITS: it ends with its input.
program Hello;

{$if defined(FULL) or defined(LEAN) or defined(THREADS)}
uses
  {$ifdef FULL} LaneMM {$ifdef THREADS}, {$endif} {$endif}
  {$ifdef LEAN} LaneMMLean {$ifdef THREADS}, {$endif} {$endif}
  {$ifdef THREADS} cthreads {$endif};
{$ifend}

begin
  WriteLn('hello');
  {$ifdef WAITS} WriteLn('ready'); Flush(Output); ReadLn; {$endif}
end.
