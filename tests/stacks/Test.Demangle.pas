/// Tests of LaneMM.Demangle. The expected texts are those of c++filt, without return types.
unit Test.Demangle;

{$mode delphi}{$H+}{$pointermath on}

interface

uses
  Test.Tools;

type
  TDemangleTests = class(TLaneTest)
  published
    procedure NamesReadAsTheProgramWritesThem;
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
