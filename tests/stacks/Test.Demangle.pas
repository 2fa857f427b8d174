/// Tests of LaneMM.Demangle. The expected texts are those of c++filt: of C++ without return types; of Rust without
/// hashes, lifetimes and the types of constants.
unit Test.Demangle;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TDemangleTests = class(TLaneTest)
  published
    procedure NamesReadAsTheProgramWritesThem;
    procedure NamesOfRustReadAsTheProgramWritesThem;
    procedure NamesOfRustThatLeadNowhereStayAsTheyAre;
    procedure LibraryOfRustIsNoPartOfTheProgram;
    procedure LongNamesOfTheStandardLibraryAreRead;
    procedure NamesOfHundredsOfPartsAreRead;
    procedure OtherNamesStayAsTheyAre;
    procedure NoPartOfANameIsRead;
    procedure NamesNestedTooDeepStayAsTheyAre;
    procedure ReportsOfAProgramWithTheUnitHaveTheNames;
  end;

implementation

uses
  SysUtils, StrUtils, testregistry, LaneMM.Text, LaneMM.Symbols, LaneMM.Demangle;

const
  Names: array[0..40, 0..1] of string = (
    ('_Z3foov', 'foo()'),
    ('_ZL10get_shrunkm', 'get_shrunk(unsigned long)'),
    ('_ZL6beyondRK7Mistake', 'beyond(Mistake const&)'),
    ('_ZN5Shape4areaEv', 'Shape::area()'),
    ('_ZNK5Shape4nameEPKci', 'Shape::name(char const*, int) const'),
    ('_ZN5ShapeC2Ev', 'Shape::Shape()'),
    ('_ZN5ShapeD0Ev', 'Shape::~Shape()'),
    ('_ZN1AC1ERKS_', 'A::A(A const&)'),
    ('_ZN1AaSEOS_', 'A::operator=(A&&)'),
    ('_ZN1A1B1CC1EPS1_PS0_PS_', 'A::B::C::C(A::B::C*, A::B*, A*)'),
    ('_ZN12_GLOBAL__N_13runEv', '(anonymous namespace)::run()'),
    ('_Z4swapIiEvRT_S1_', 'swap<int>(int&, int&)'),
    ('_Z3maxIdET_S0_S0_', 'max<double>(double, double)'),
    ('_ZN5StackIiE4pushERKi', 'Stack<int>::push(int const&)'),
    ('_ZN5StackIiEC1Em', 'Stack<int>::Stack(unsigned long)'),
    ('_ZN4ListI5StackIiEE5beginEv', 'List<Stack<int> >::begin()'),
    ('_ZN5FixedILi16ELb1EE3putEh', 'Fixed<16, true>::put(unsigned char)'),
    ('_ZN5FixedILin3EE3getEv', 'Fixed<-3>::get()'),
    ('_Z5printIJicdEEvDpT_', 'print<int, char, double>(int, char, double)'),
    ('_Z5printIJEEvDpT_', 'print<>()'),
    ('_Z4makeI1AJiPcEET_DpOT0_', 'make<A, int, char*>(int&&, char*&&)'),
    ('_Z4makeI1AJEET_iDpOT0_', 'make<A>(int)'),
    ('_ZN3JobI1AE3runIJLm0ELm1EEEEv5ListsIJXspT_EEE', 'Job<A>::run<0ul, 1ul>(Lists<0ul, 1ul>)'),
    ('_Z4callI1AJEEN6ResultIT_JDpT0_EE4typeEOS2_DpOS3_', 'call<A>(A&&)'),
    ('_Z5visitPFiPvES_', 'visit(int (*)(void*), void*)'),
    ('_Z5visitPFivES0_', 'visit(int (*)(), int (*)())'),
    ('_Z4callM1AFviE', 'call(void (A::*)(int))'),
    ('_Z4fillRA8_i', 'fill(int (&)[8])'),
    ('_Z3logPKcz', 'log(char const*, ...)'),
    ('_Znwm', 'operator new(unsigned long)'),
    ('_ZdaPvm', 'operator delete[](void*, unsigned long)'),
    ('_ZNK1AcvbEv', 'A::operator bool() const'),
    ('_ZNK3KeyltERKS_', 'Key::operator<(Key const&) const'),
    ('_ZlsRSoRK1A', 'operator<<(std::ostream&, A const&)'),
    ('_ZNSt6vectorIiSaIiEE9push_backERKi',
      'std::vector<int, std::allocator<int> >::push_back(int const&)'),
    ('_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEC1ERKS4_',
      'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char>'
      + ' >::basic_string(std::__cxx11::basic_string<char, std::char_traits<char>,'
      + ' std::allocator<char> > const&)'),
    ('_ZZ4mainENKUlvE_clEv', 'main::{lambda()#1}::operator()() const'),
    ('_ZZN1A3runEiENKUliE0_clEi', 'A::run(int)::{lambda(int)#2}::operator()(int) const'),
    ('_ZN1A4sizeB5cxx11Ev', 'A::size[abi:cxx11]()'),
    ('_ZThn16_N1B3runEv', 'non-virtual thunk to B::run()'),
    ('_Z4growPvm.isra.0', 'grow(void*, unsigned long) [clone .isra.0]'));

  // As rustc 1.95 writes them, the older form first.
  RustNames: array[0..13, 0..1] of string = (
    ('_ZN3std3sys9backtrace28__rust_begin_short_backtrace17h8daeadf8073f1fa9E',
      'std::sys::backtrace::__rust_begin_short_backtrace'),
    ('_ZN3std2rt10lang_start28_$u7b$$u7b$closure$u7d$$u7d$17hc2d35a5c333200eeE.llvm.12476620496975923260',
      'std::rt::lang_start::{{closure}}'),
    ('_ZN4core3ptr112drop_in_place$LT$alloc..vec..Vec$LT$alloc..boxed..Box$LT$dyn$u20$leaky..Shape$u2b$core..marker'
      + '..Send$GT$$GT$$GT$17hedab14480037d3b3E',
      'core::ptr::drop_in_place<alloc::vec::Vec<alloc::boxed::Box<dyn leaky::Shape+core::marker::Send>>>'),
    ('_RNvXs8_NtCsgEmfK2I1SDS_4core3fmtNtB5_9ArgumentsNtB5_7Display3fmt',
      '<core::fmt::Arguments as core::fmt::Display>::fmt'),
    ('_RNvXs_CsgY6Mt91CT9J_14rustc_demangleNtB4_13DemangleStyleNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt',
      '<rustc_demangle::DemangleStyle as core::fmt::Display>::fmt'),
    ('_RINvMNtCsgEmfK2I1SDS_4core3stre18trim_start_matchesReECsgY6Mt91CT9J_14rustc_demangle',
      '<str>::trim_start_matches::<&str>'),
    ('_RINvNtCsgEmfK2I1SDS_4core3ptr13drop_in_placeINtNtCslNYArtu3iFV_5alloc5boxed3BoxSNtNtBL_6string6StringEE'
      + 'CsjrHSEGnQ3l9_3std', 'core::ptr::drop_in_place::<alloc::boxed::Box<[alloc::string::String]>>'),
    ('_RINvNtCsgEmfK2I1SDS_4core6escape14escape_unicodeKja_ECsgY6Mt91CT9J_14rustc_demangle',
      'core::escape::escape_unicode::<10>'),
    ('_RINvXs_NvMNtCslNYArtu3iFV_5alloc5sliceSp9to_vec_inhNtB5_10ConvertVec6to_vecNtNtBa_5alloc6GlobalE'
      + 'CsjrHSEGnQ3l9_3std', '<u8 as <[_]>::to_vec_in::ConvertVec>::to_vec::<alloc::alloc::Global>'),
    ('_RNSNvYNCNvNtNtNtCsjrHSEGnQ3l9_3std3sys11personality3gcc14find_eh_actions_0INtNtNtCsgEmfK2I1SDS_4core3ops8function'
      + '6FnOnceuE9call_once6vtableBe_', '<std::sys::personality::gcc::find_eh_action::{closure#1} as'
      + ' core::ops::function::FnOnce<()>>::call_once::{shim:vtable#0}'),
    ('_RNvMs3_NtCslNYArtu3iFV_5alloc7raw_vecINtB5_6RawVecTOhFUKCBN_EuENtNtCsjrHSEGnQ3l9_3std5alloc6SystemE8grow_oneB13_',
      '<alloc::raw_vec::RawVec<(*mut u8, unsafe extern "C" fn(*mut u8)), std::alloc::System>>::grow_one'),
    ('_RNCNCNCNvNtCsjrHSEGnQ3l9_3std2rt19lang_start_internal00s_0B9_',
      'std::rt::lang_start_internal::{closure#0}::{closure#0}::{closure#1}'),
    ('_RNvC5leaky3fun.llvm.123', 'leaky::fun'),
    ('_RINvC5leaky3funKb1_Kc41_Kin2a_TlEAhj3_QspE',
      'leaky::fun::<true, ''\u{41}'', -42, (i32,), [u8; 3], &mut i16, _>'));

// Returns what is added to a text; `-` when the name is refused.
function Demangled(const Name: string): string;
var
  Text: TText;
begin
  if not TextOpen(Text, 16384) then
    raise EOutOfMemory.Create('no text');
  try
    if DemangleAdd(Text, PAnsiChar(Name)) then
      SetString(Result, Text.Start, Text.Length)
    else if Text.Length = 0 then
      Result := '-'
    else
      raise Exception.Create('text of the refused name ' + Name);
  finally
    TextClose(Text);
  end;
end;

procedure TDemangleTests.NamesReadAsTheProgramWritesThem;
var
  Index: Integer;
begin
  for Index := 0 to High(Names) do
    AssertEquals(Names[Index, 0], Names[Index, 1], Demangled(Names[Index, 0]));
end;

procedure TDemangleTests.NamesOfRustReadAsTheProgramWritesThem;
var
  Index: Integer;
begin
  for Index := 0 to High(RustNames) do
    AssertEquals(RustNames[Index, 0], RustNames[Index, 1], Demangled(RustNames[Index, 0]));
end;

// A place in a name of Rust, in base 62.
function Reference(Place: Integer): string;
const
  Digits = '0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ';
begin
  Result := 'B' + Digits[(Place - 1) div 62 mod 62 + 1] + Digits[(Place - 1) mod 62 + 1] + '_';
end;

procedure TDemangleTests.NamesOfRustThatLeadNowhereStayAsTheyAre;
const
  Start = '_RINvC5leaky3fun';
var
  Index, Place, Next: Integer;
  Name: string;
begin
  AssertEquals('-', Demangled('_R'));
  AssertEquals('-', Demangled('_RNvC5leaky99fun'));
  AssertEquals('a reference to itself', '-', Demangled('_RNvB_3fun'));
  AssertEquals('-', Demangled('_RNvB99_3fun'));
  AssertEquals('-', Demangled('_RINvC5leaky3fun' + StringOfChar('T', 300000)));
  // Each type lies in a part that is not shown, and refers to the one before it twice: 2^40 visits.
  Name := Start + 'u';
  Place := Length(Start) - 2;
  for Index := 1 to 40 do
  begin
    Next := Length(Name) - 2;
    Name := Name + 'MIC1aT' + Reference(Place) + Reference(Place) + 'EEu';
    Place := Next;
  end;
  AssertEquals('-', Demangled(Name + 'E'));
  AssertEquals('leaky::fun::<(), <()>>', Demangled(Start + 'uMIC1aT' + Reference(14) + Reference(14) + 'EEuE'));
end;

// Its generic routines are compiled with the program; its source files have the names that its builders gave them.
procedure TDemangleTests.LibraryOfRustIsNoPartOfTheProgram;

  function IsLibrary(const Routine: string): Boolean;
  var
    Symbol: TSymbol;
  begin
    Symbol := Default(TSymbol);
    Symbol.Routine := PAnsiChar(Routine);
    Result := SymbolIsLibrary(@Symbol);
  end;

  function IsMain(const Routine: string): Boolean;
  var
    Symbol: TSymbol;
  begin
    Symbol := Default(TSymbol);
    Symbol.Routine := PAnsiChar(Routine);
    Result := SymbolIsMain(@Symbol);
  end;

begin
  AssertTrue(IsMain(RustNames[0, 0]));
  AssertFalse(IsMain(RustNames[1, 0]));
  AssertTrue('older', IsLibrary(RustNames[2, 0]));
  AssertTrue('newer', IsLibrary(RustNames[5, 0]));
  AssertTrue('a method', IsLibrary('_ZN99_$LT$alloc..raw_vec..RawVec$LT$T$GT$$GT$4grow17h8daeadf8073f1fa9E'));
  AssertFalse('of the program', IsLibrary('_RNvXs_C5leakyNtB4_5ShapeNtNtCsgEmfK2I1SDS_4core3fmt7Display3fmt'));
  AssertFalse('likewise', IsLibrary('_ZN55_$LT$leaky..Shape$u20$as$u20$core..fmt..Display$GT$3fmt17h8daeadf8073f1fa9E'));
  AssertFalse('alike', IsLibrary('_ZN9core_main3run17h8daeadf8073f1fa9E'));
  AssertFalse('C++', IsLibrary('_ZN4core3runEv'));
  AssertTrue('a file', PathIsOfStandard('/rustc/59807616e1fa/library/alloc/src/vec'));
  AssertTrue('a file of the library as it was built', PathIsOfStandard('library/alloc/src/vec'));
  AssertFalse('a file of the program', PathIsOfStandard('library/own/src'));
end;

// std::map<std::string, std::vector<int>>: the parts that it refers to have more than 3,000 characters.
procedure TDemangleTests.LongNamesOfTheStandardLibraryAreRead;
const
  Name = '_ZNSt8_Rb_treeINSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEEESt4pairIKS5_St6vectorIiSaIi'
    + 'EEESt10_Select1stISB_ESt4lessIS5_ESaISB_EE22_M_emplace_hint_uniqueIJRKSt21piecewise_construct_t'
    + 'St5tupleIJOS5_EESM_IJEEEEESt17_Rb_tree_iteratorISB_ESt23_Rb_tree_const_iteratorISB_EDpOT_';
  Text = 'std::__cxx11::basic_string<char, std::char_traits<char>, std::allocator<char> >';
  Pair = 'std::pair<' + Text + ' const, std::vector<int, std::allocator<int> > >';
  Tree = 'std::_Rb_tree<' + Text + ', ' + Pair + ', std::_Select1st<' + Pair + ' >, std::less<' + Text
    + ' >, std::allocator<' + Pair + ' > >';
  Place = 'std::piecewise_construct_t const&';
begin
  AssertEquals(Tree + '::_M_emplace_hint_unique<' + Place + ', std::tuple<' + Text
    + '&&>, std::tuple<> >(std::_Rb_tree_const_iterator<' + Pair + ' >, ' + Place + ', std::tuple<'
    + Text + '&&>&&, std::tuple<>&&)', Demangled(Name));
end;

// As templates that are built of others have them. The last part is referred to again.
procedure TDemangleTests.NamesOfHundredsOfPartsAreRead;
const
  Count = 900;
  Last = 'SO0_'; // the parts are numbered from S_, then S0_ on, in base 36
var
  Name, Text: string;
  Index: Integer;
begin
  Name := '_Z1f';
  Text := 'f(';
  for Index := 1 to Count do
  begin
    Name := Name + Format('4T%.3d', [Index]);
    Text := Text + Format('T%.3d, ', [Index]);
  end;
  AssertEquals(Text + Format('T%.3d)', [24 * 36 + 2]), Demangled(Name + Last));
end;

procedure TDemangleTests.OtherNamesStayAsTheyAre;
begin
  AssertEquals('-', Demangled('main'));
  AssertEquals('-', Demangled(''));
  AssertEquals('-', Demangled('_Z'));
  AssertEquals('-', Demangled('_Zq'));
  AssertEquals('-', Demangled('_Z9999foo'));
  AssertEquals('-', Demangled('_Z3fooS_'));
  AssertEquals('-', Demangled('_Z3fooIiEvT5_'));
  AssertEquals('-', Demangled('_Z3fooDTfp_E'));
  AssertEquals('-', Demangled('PLANTEDBUGS_$$_CALLFREED'));
  AssertEquals('-', Demangled('_Z3foo' + StringOfChar('P', 5000) + 'i'));
end;

// A name that was cut anywhere is refused, or is the name of a variable.
procedure TDemangleTests.NoPartOfANameIsRead;
var
  Index, Length_: Integer;
  Part: string;
begin
  for Index := 0 to High(Names) do
    for Length_ := 0 to Length(Names[Index, 0]) - 1 do
    begin
      Part := Demangled(Copy(Names[Index, 0], 1, Length_));
      AssertTrue(Part, Length(Part) <= Length(Names[Index, 1]) + 20);
    end;
end;

// With the stack of a thread; of an executable file that was made for that.
procedure TDemangleTests.NamesNestedTooDeepStayAsTheyAre;
const
  Count = 300000;
begin
  AssertEquals('-', Demangled('_Z' + StringOfChar('Z', Count)));
  AssertEquals('-', Demangled('_Z' + DupeString('Z1fvE', Count)));
  AssertEquals('-', Demangled('_Z1fI' + StringOfChar('J', Count)));
  AssertEquals('-', Demangled('_Z' + DupeString('1fIL_Z', Count)));
  AssertEquals('f()::g()::h()', Demangled('_ZZZ1fvE1gvE1hv'));
end;

// The unit is in the uses clause of this program.
procedure TDemangleTests.ReportsOfAProgramWithTheUnitHaveTheNames;
var
  Text: TText;
  Symbol: TSymbol;
begin
  Symbol := Default(TSymbol);
  Symbol.Routine := '_ZN5Shape4areaEv';
  AssertTrue('no text', TextOpen(Text, 4096));
  SymbolAddRoutine(Text, @Symbol);
  try
    AssertEquals('Shape::area()', Copy(Text.Start, 1, Text.Length));
  finally
    TextClose(Text);
  end;
end;

initialization
  RegisterTest(TDemangleTests);
end.
