// Declarations of Delphi's unit System, 10.4: what src/ uses of it, as Delphi declares it. The
// parser knows the compiler's own routines (Move is none of them, FillChar is) and simple types.
// Source: docwiki.embarcadero.com, API:System.
unit System;

interface

type
  TArray<T> = array of T;
  PShortString = ^ShortString;
  // In Delphi for PByte alone; LaneMM.inc allows it for all where it is included, which the parser
  // does not know.
  {$pointermath on}
  PByte = ^Byte;
  PShortInt = ^ShortInt;
  PWord = ^Word;
  PSmallInt = ^SmallInt;
  PInteger = ^Integer;
  PCardinal = ^Cardinal;
  PInt64 = ^Int64;
  PUInt64 = ^UInt64;
  PNativeInt = ^NativeInt;
  PNativeUInt = ^NativeUInt;
  PPointer = ^Pointer;
  PPAnsiChar = ^PAnsiChar;
  TVarRec = record
    VType: Byte;
  end;
  TClass = class of TObject;
  TObject = class
  public
    constructor Create;
    destructor Destroy; virtual;
    procedure Free;
    procedure FreeInstance; virtual;
    class function NewInstance: TObject; virtual;
    class function ClassParent: TClass;
    class function ClassName: string;
    class function InstanceSize: Integer;
  end;
  IInterface = interface
  end;
  IUnknown = IInterface;
  TInterfacedObject = class(TObject, IInterface)
  end;
  TClassHelperBase = class
  end;
  TGUID = record
    D1: Cardinal;
    D2: Word;
    D3: Word;
    D4: array[0..7] of Byte;
  end;
  TInterfaceEntry = packed record
    IID: TGUID;
    VTable: Pointer;
    IOffset: Integer;
    ImplGetter: NativeUInt;
  end;
  THeapStatus = record
    TotalAddrSpace: Cardinal;
    TotalUncommitted: Cardinal;
    TotalCommitted: Cardinal;
    TotalAllocated: Cardinal;
    TotalFree: Cardinal;
    FreeSmall: Cardinal;
    FreeBig: Cardinal;
    Unused: Cardinal;
    Overhead: Cardinal;
    HeapErrorCode: Cardinal;
  end;
  TMemoryManagerEx = record
    GetMem: function(Size: NativeInt): Pointer;
    FreeMem: function(P: Pointer): Integer;
    ReallocMem: function(P: Pointer; Size: NativeInt): Pointer;
    AllocMem: function(Size: NativeInt): Pointer;
    RegisterExpectedMemoryLeak: function(P: Pointer): Boolean;
    UnregisterExpectedMemoryLeak: function(P: Pointer): Boolean;
  end;
  TRuntimeError = (reNone, reOutOfMemory, reInvalidPtr, reDivByZero, reRangeError, reIntOverflow,
    reInvalidOp, reZeroDivide, reOverflow, reUnderflow, reInvalidCast, reAccessViolation,
    rePrivInstruction, reControlBreak, reStackOverflow, reVarTypeCast, reVarInvalidOp,
    reVarDispatch, reVarArrayCreate, reVarNotArray, reVarArrayBounds, reAssertionFailed,
    reExternalException, reIntfCastError, reSafeCallError, reMonitorNotLocked,
    reNoMonitorSupport, rePlatformNotImplemented, reObjectDisposed);

  TSmallBlockTypeState = packed record
    InternalBlockSize: Cardinal;
    UseableBlockSize: Cardinal;
    AllocatedBlockCount: NativeUInt;
    ReservedAddressSpace: NativeUInt;
  end;
  TChunkStatus = (csUnallocated, csAllocated, csReserved, csSysAllocated, csSysReserved);
  TMemoryMap = array[0..65535] of TChunkStatus;

const
  CP_UTF8 = 65001;
  vmtSelfPtr = -88;
  vmtIntfTable = -84;
  vmtInitTable = -76;
  vmtTypeInfo = -72;
  vmtClassName = -56;
  vmtInstanceSize = -52;
  vmtParent = -48;
  vmtNewInstance = -12;
  vmtFreeInstance = -8;
  vmtDestroy = -4;

var
  ExitCode: Integer;
  ExitProc: Pointer;
  IsLibrary: Boolean;
  IsMultiThread: Boolean;

procedure Move(const Source; var Dest; Count: NativeInt);
procedure YieldProcessor;
procedure Error(ErrorCode: TRuntimeError);
procedure GetMemoryManager(var MemMgrEx: TMemoryManagerEx);
procedure SetMemoryManager(const MemMgrEx: TMemoryManagerEx);
function IsMemoryManagerSet: Boolean;
function GetHeapStatus: THeapStatus;
function AllocMem(Size: NativeInt): Pointer;
function Exp(const X: Extended): Extended;
function Ln(const X: Extended): Extended;
function Sqrt(const X: Extended): Extended;
function AssignFile(var F: Text; FileName: string; CodePage: Word): Integer;
function IOResult: Integer;
function UTF8Encode(const WS: UnicodeString): RawByteString;
function Utf8ToUnicode(Dest: PWideChar; MaxDestChars: Cardinal; Source: PAnsiChar;
  SourceBytes: Cardinal): Cardinal;
function UnicodeToUtf8(Dest: PAnsiChar; MaxDestBytes: Cardinal; Source: PWideChar;
  SourceChars: Cardinal): Cardinal;
function UpCase(Ch: Char): Char;

implementation

end.
