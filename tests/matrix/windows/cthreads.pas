/// Takes the place of the run-time library's unit where threads need none: programs of the tests name
/// it on all systems.
unit cthreads;

interface

implementation

end.
