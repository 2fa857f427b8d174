/// Tests of LaneMM.Messages.
unit Test.Messages;

{$mode delphi}{$H+}

interface

uses
  Test.Tools, LaneMM.Messages;

type
  TMessagesTests = class(TLaneTest)
  strict private
    Fields: TFields;
    function Said(Message: TMessage): string;
  protected
    procedure SetUp; override;
    procedure TearDown; override;
  published
    procedure FieldsAreReplacedByTheirValues;
    procedure CountOfOneHasItsNounInTheSingular;
    procedure FieldWithoutValueStays;
    procedure TextCanBeReplacedAndTakenBack;
    procedure ReplacedTextIsACopy;
    procedure UnknownNameIsRefused;
    procedure EveryMessageHasANameOfItsOwn;
  end;

implementation

uses
  testregistry, LaneMM.Os, LaneMM.Text;

procedure TMessagesTests.SetUp;
begin
  FieldsOpen(Fields);
end;

procedure TMessagesTests.TearDown;
begin
  FieldsClose(Fields);
end;

function TMessagesTests.Said(Message: TMessage): string;
var
  Text: TText;
begin
  TextOpen(Text, OsPageSize);
  MessageAdd(Text, Message, Fields);
  SetString(Result, Text.Start, Text.Length);
  TextClose(Text);
end;

procedure TMessagesTests.FieldsAreReplacedByTheirValues;
begin
  FieldNumber(Fields, fiSize, '%g byte%+', 12345);
  FieldChars(Fields, fiGiven, 'seven');
  AssertEquals('Wrong size: allocated with 12,345 bytes, freed with seven.'#10,
    Said(msWrongSize));
end;

procedure TMessagesTests.CountOfOneHasItsNounInTheSingular;
begin
  FieldNumber(Fields, fiBlocks, '%g block%+', 1);
  FieldNumber(Fields, fiSize, '%g byte%+', 0);
  AssertEquals('Memory leaks: 1 block, 0 bytes:'#10, Said(msLeaks));
  FieldNumber(Fields, fiBlocks, '%g block%+', 1001);
  FieldNumber(Fields, fiSize, '%g byte%+', 1);
  AssertEquals('Memory leaks: 1,001 blocks, 1 byte:'#10, Said(msLeaks));
end;

procedure TMessagesTests.FieldWithoutValueStays;
begin
  FieldChars(Fields, fiClass, '');
  AssertEquals('  Class: '#10, Said(msClass));
  AssertEquals('  Group: {group}'#10, Said(msGroup));
end;

procedure TMessagesTests.TextCanBeReplacedAndTakenBack;
begin
  FieldChars(Fields, fiClass, 'TFoo');
  AssertTrue(MessageSet('class', '{class} {b} heißt die Klasse'));
  AssertEquals('TFoo {b} heißt die Klasse'#10, Said(msClass));
  AssertTrue(MessageSet('class', nil));
  AssertEquals('  Class: TFoo'#10, Said(msClass));
end;

procedure TMessagesTests.ReplacedTextIsACopy;
var
  Text: array[0..3] of AnsiChar;
begin
  Text := 'one';
  AssertTrue(MessageSet('group', @Text));
  Text := 'two';
  AssertEquals('one'#10, Said(msGroup));
  MessageSet('group', nil);
end;

procedure TMessagesTests.UnknownNameIsRefused;
begin
  AssertFalse(MessageSet('classes', 'x'));
  AssertFalse(MessageSet('clas', 'x'));
end;

procedure TMessagesTests.EveryMessageHasANameOfItsOwn;
var
  First, Second: TMessage;
begin
  for First := Low(TMessage) to High(TMessage) do
    for Second := Low(TMessage) to High(TMessage) do
      AssertTrue((string(MessageName(First)) = MessageName(Second)) = (First = Second));
end;

initialization
  RegisterTest(TMessagesTests);
end.
