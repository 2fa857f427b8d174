/// No unit uses it. It has what BlockMentioned is called by here, in words only.
unit LaneMM.Lonely;

interface

implementation

const
  Text = 'BlockMentioned';

end.
