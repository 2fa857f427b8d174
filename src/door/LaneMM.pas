// The unit LaneMM for programs whose unit path is src/*: the door itself is ../LaneMM.pas.
{$I ../LaneMM.pas}
