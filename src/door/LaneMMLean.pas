// The unit LaneMMLean for programs whose unit path is src/*, as LaneMM.pas here.
{$I ../LaneMMLean.pas}
