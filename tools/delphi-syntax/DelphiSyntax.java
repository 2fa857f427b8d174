// Parses Pascal sources as Delphi would, for some targets and versions, and reports what Delphi's
// compiler would refuse: a syntax error; a unit or a name that is not declared; a routine of an
// interface without a body; arithmetic with an untyped pointer; an inline routine of an interface
// that uses a name which its callers do not see.
//
//   java -cp JARS DelphiSyntax.java RTL SOURCES TOOLCHAIN:VERSION...
//
// RTL is the folder with the declarations of Delphi's run-time library, SOURCES the folder whose
// units are read, with its subfolders. TOOLCHAIN is DCC32, DCC64 or DCCLINUX64; VERSION is that of
// the compiler, 34.0 for Delphi 10.4. One line for each finding, `TOOLCHAIN VERSION: UNIT:LINE: ...`;
// the line of an include directive stands for what it includes. Then one line with the sums of each
// target. Exit code 1 when there is a finding.

import au.com.integradev.delphi.antlr.ast.visitors.SymbolAssociationVisitor;
import au.com.integradev.delphi.compiler.CompilerVersion;
import au.com.integradev.delphi.compiler.PredefinedConditionals;
import au.com.integradev.delphi.compiler.Toolchain;
import au.com.integradev.delphi.file.DelphiFile;
import au.com.integradev.delphi.file.DelphiFileConfig;
import au.com.integradev.delphi.preprocessor.DelphiPreprocessorFactory;
import au.com.integradev.delphi.preprocessor.search.SearchPath;
import au.com.integradev.delphi.symbol.SymbolTable;
import au.com.integradev.delphi.type.factory.TypeFactoryImpl;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import java.util.Set;
import java.util.TreeSet;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.sonar.plugins.communitydelphi.api.ast.BinaryExpressionNode;
import org.sonar.plugins.communitydelphi.api.ast.DelphiNode;
import org.sonar.plugins.communitydelphi.api.ast.ImplementationSectionNode;
import org.sonar.plugins.communitydelphi.api.ast.InterfaceSectionNode;
import org.sonar.plugins.communitydelphi.api.ast.NameReferenceNode;
import org.sonar.plugins.communitydelphi.api.ast.RoutineDeclarationNode;
import org.sonar.plugins.communitydelphi.api.ast.RoutineImplementationNode;
import org.sonar.plugins.communitydelphi.api.ast.RoutineNameNode;
import org.sonar.plugins.communitydelphi.api.ast.SimpleNameDeclarationNode;
import org.sonar.plugins.communitydelphi.api.ast.UnitImportNode;
import org.sonar.plugins.communitydelphi.api.operator.BinaryOperator;
import org.sonar.plugins.communitydelphi.api.symbol.declaration.NameDeclaration;
import org.sonar.plugins.communitydelphi.api.symbol.declaration.RoutineDirective;
import org.sonar.plugins.communitydelphi.api.symbol.scope.FileScope;
import org.sonar.plugins.communitydelphi.api.type.Type;

public class DelphiSyntax {
  private final String target;
  private final DelphiFileConfig config;
  private final SymbolTable symbols;
  // The names that each unit declares in its interface, in lower case.
  private final Map<String, Set<String>> exports = new HashMap<>();
  private int names;
  private int findings;
  // Of the unit that is read.
  private Path unit;

  public static void main(String[] arguments) throws Exception {
    Path rtl = Path.of(arguments[0]);
    List<Path> units;
    try (Stream<Path> files = Files.walk(Path.of(arguments[1]))) {
      units = files.filter(file -> file.toString().endsWith(".pas")).sorted()
          .collect(Collectors.toList());
    }
    int findings = 0;
    for (String target : List.of(arguments).subList(2, arguments.length)) {
      findings += new DelphiSyntax(target, rtl, units).readAll(units);
    }
    System.exit(findings == 0 && !units.isEmpty() ? 0 : 1);
  }

  private DelphiSyntax(String target, Path rtl, List<Path> units) {
    this.target = target.replace(':', ' ');
    Toolchain toolchain = Toolchain.valueOf(target.substring(0, target.indexOf(':')));
    CompilerVersion version =
        CompilerVersion.fromVersionNumber(target.substring(target.indexOf(':') + 1));
    Set<String> defines = new TreeSet<>(String.CASE_INSENSITIVE_ORDER);
    defines.addAll(PredefinedConditionals.getConditionalDefines(toolchain, version));
    TypeFactoryImpl types = new TypeFactoryImpl(toolchain, version);
    DelphiPreprocessorFactory preprocessor = new DelphiPreprocessorFactory(toolchain.platform);
    SearchPath path = SearchPath.create(
        units.stream().map(Path::getParent).distinct().collect(Collectors.toList()));
    config = DelphiFile.createConfig("UTF-8", preprocessor, types, path, defines);
    symbols = SymbolTable.builder().preprocessorFactory(preprocessor).typeFactory(types)
        .standardLibraryPath(rtl).sourceFiles(units).searchPath(path).conditionalDefines(defines)
        .encoding("UTF-8").build();
  }

  private int readAll(List<Path> units) {
    units.forEach(this::export);
    units.forEach(this::read);
    System.out.println(target + ": " + units.size() + " units, " + names + " names, " + findings
        + " findings");
    return findings;
  }

  private static String lower(String name) {
    return name.toLowerCase(Locale.ROOT);
  }

  private void export(Path file) {
    try {
      Set<String> declared = new HashSet<>();
      DelphiFile.from(file.toFile(), config).getAst()
          .findDescendantsOfType(InterfaceSectionNode.class)
          .forEach(section -> section.findDescendantsOfType(SimpleNameDeclarationNode.class)
              .forEach(name -> declared.add(lower(name.getImage()))));
      exports.put(lower(file.getFileName().toString().replaceFirst("\\.pas$", "")), declared);
    } catch (DelphiFile.DelphiFileConstructionException error) {
      // read reports it
    }
  }

  private void read(Path file) {
    unit = file.getFileName();
    try {
      DelphiFile source = DelphiFile.from(file.toFile(), config);
      new SymbolAssociationVisitor()
          .visit(source.getAst(), new SymbolAssociationVisitor.Data(symbols));
      checkBodies(source.getAst());
      checkNames(source.getAst());
      checkInlines(source.getAst());
    } catch (DelphiFile.DelphiFileConstructionException error) {
      report(error.getMessage().replaceAll("^.*line (\\d+):\\d+ (.*)\\)$", "$1: $2"));
    }
  }

  private void report(int line, String text) {
    report(line + ": " + text);
  }

  private void report(String text) {
    findings++;
    System.out.println(target + ": " + unit + ":" + text);
  }

  // Each routine of the interface has a body in the implementation.
  private void checkBodies(DelphiNode root) {
    Set<String> bodies = new HashSet<>();
    for (RoutineImplementationNode routine
        : root.findDescendantsOfType(RoutineImplementationNode.class)) {
      bodies.add(lower(routine.fullyQualifiedName()));
    }
    for (RoutineDeclarationNode routine
        : root.findDescendantsOfType(RoutineDeclarationNode.class)) {
      if (!routine.hasDirective(RoutineDirective.EXTERNAL)
          && !bodies.contains(lower(routine.fullyQualifiedName()))) {
        report(routine.getBeginLine(), routine.simpleName() + " has no body");
      }
    }
  }

  private void checkNames(DelphiNode node) {
    if (node instanceof UnitImportNode && !((UnitImportNode) node).isResolvedImport()) {
      report(node.getBeginLine(), "unknown unit "
          + ((UnitImportNode) node).getNameNode().getImage());
    }
    if (node instanceof NameReferenceNode && !(node.getParent() instanceof RoutineNameNode)) {
      checkName((NameReferenceNode) node);
    }
    if (node instanceof BinaryExpressionNode) {
      checkPointer((BinaryExpressionNode) node);
    }
    node.getChildren().forEach(this::checkNames);
  }

  // Delphi calculates with typed pointers only.
  private void checkPointer(BinaryExpressionNode sum) {
    Type type = sum.getLeft().getType();
    if ((sum.getOperator() == BinaryOperator.ADD || sum.getOperator() == BinaryOperator.SUBTRACT)
        && type.isPointer() && ((Type.PointerType) type).isUntypedPointer()) {
      report(sum.getBeginLine(), "arithmetic with an untyped pointer: " + sum.getImage());
    }
  }

  // An inline routine of the interface uses nothing that its callers do not see.
  private void checkInlines(DelphiNode root) {
    InterfaceSectionNode visible = root.getFirstDescendantOfType(InterfaceSectionNode.class);
    ImplementationSectionNode hidden =
        root.getFirstDescendantOfType(ImplementationSectionNode.class);
    if (visible == null || hidden == null) {
      return;
    }
    Set<String> units = visible.findDescendantsOfType(UnitImportNode.class).stream()
        .map(unit -> lower(unit.getNameNode().getImage())).collect(Collectors.toSet());
    Set<String> inlines = visible.findDescendantsOfType(RoutineDeclarationNode.class).stream()
        .filter(routine -> routine.hasDirective(RoutineDirective.INLINE))
        .map(routine -> lower(routine.simpleName())).collect(Collectors.toSet());
    units.add("system");
    units.add("");
    hidden.findDescendantsOfType(RoutineImplementationNode.class).stream()
        .filter(routine -> inlines.contains(lower(routine.simpleName())))
        .forEach(routine -> checkInline(routine, units, hidden.getBeginLine()));
  }

  private void checkInline(RoutineImplementationNode routine, Set<String> units, int hiddenLine) {
    String own = lower(unit.toString().replaceFirst("\\.pas$", ""));
    for (NameReferenceNode name : routine.getBlock().findDescendantsOfType(NameReferenceNode.class)) {
      NameDeclaration used = name.getNameDeclaration();
      if (used == null || !(used.getScope() instanceof FileScope)) {
        continue;
      }
      String home = lower(used.getNode().getUnitName());
      boolean isVisible =
          home.equals(own) ? used.getNode().getBeginLine() < hiddenLine : units.contains(home);
      if (!isVisible) {
        report(name.getBeginLine(), "inline " + routine.simpleName() + " uses "
            + name.getIdentifier().getImage() + ", which its callers do not see");
      }
    }
  }

  // The parser resolves no Unit.Part.Name in a unit that is called Unit.
  private boolean isOfUnit(NameReferenceNode name) {
    String path = name.getIdentifier().getImage();
    for (NameReferenceNode part = name.prevName(); part != null; part = part.prevName()) {
      path = part.getIdentifier().getImage() + "." + path;
    }
    String qualified = lower(path);
    return exports.keySet().stream().anyMatch(
        unit -> unit.equals(qualified) || unit.startsWith(qualified + ".")
            || qualified.startsWith(unit + ".")
                && exports.get(unit).contains(qualified.substring(unit.length() + 1)));
  }

  private void checkName(NameReferenceNode name) {
    names++;
    if (name.getNameDeclaration() == null && !isOfUnit(name)) {
      report(name.getBeginLine(), "unknown name " + name.getIdentifier().getImage());
    }
  }
}
