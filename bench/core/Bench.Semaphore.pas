/// Counting semaphores of the C library: they hand batches from thread to thread.
//
// Callers:  any thread. A post without a waiting thread makes no call to the kernel, and
//           a thread that waits sleeps, so waiting shows up in no CPU time.
// Source:   sem_overview(7); the size of sem_t is that of glibc on 64-bit Linux.
unit Bench.Semaphore;

{$I Bench.inc}

interface

type
  /// A semaphore; only the routines below look inside.
  TSemaphore = record
    Words: array[0..3] of UInt64; //< shared  sem_t
  end;

/// Prepares Semaphore with Count permits.
procedure SemaphoreStart(out Semaphore: TSemaphore; Count: Cardinal);
/// Takes one permit; sleeps until there is one.
procedure SemaphoreWait(var Semaphore: TSemaphore);
/// Adds one permit.
procedure SemaphorePost(var Semaphore: TSemaphore);

implementation

function SemInit(var Semaphore: TSemaphore; IsShared: LongInt; Count: Cardinal): LongInt; cdecl;
  external 'c' name 'sem_init';
function SemWait(var Semaphore: TSemaphore): LongInt; cdecl; external 'c' name 'sem_wait';
function SemPost(var Semaphore: TSemaphore): LongInt; cdecl; external 'c' name 'sem_post';

procedure SemaphoreStart(out Semaphore: TSemaphore; Count: Cardinal);
begin
  SemInit(Semaphore, 0, Count);
end;

procedure SemaphoreWait(var Semaphore: TSemaphore);
begin
  while SemWait(Semaphore) <> 0 do // interrupted by a signal
    ;
end;

procedure SemaphorePost(var Semaphore: TSemaphore);
begin
  SemPost(Semaphore);
end;

end.
