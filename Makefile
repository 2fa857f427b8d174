# LaneMM needs no build: put src/ on the unit path. This file runs demos, tests and checks.
# Everything that is built goes below build/. Missing tools: see tools/need.sh.

# -l- no banner; -v0 forget the verbosity of fpc.cfg; -vew errors and warnings; -vm not those about
# unreachable code (6018), because options are constants and code says `if`, and about pointers as
# numbers (4082): Free Pascal may forget that LaneMM.inc switches them off, see LaneMM.AfterUses.inc.
# -g- -CR- -Co-: not the heap tracer and the checks that a user's fpc.cfg may switch on. -B: the compiler
# does not see that a routine has changed which a unit inlines, if its implementation alone uses it.
FPCFLAGS = -B -l- -v0 -vew -vm4082,6018 -g- -CR- -Co-

# Another compiler, a command that runs its programs, and a folder of its own for what it builds;
# for another target see tests/matrix. The tools of this file are built by fpc.
FPC = fpc
RUN =
OUT = build
# A file that names tests to leave out, and why.
WITHOUT =
export FPC RUN OUT WITHOUT
# With it cd may go elsewhere, and prints where.
unexport CDPATH

help:
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "make %-12s %s\n", $$1, $$2 }' Makefile

list: ## all other targets; of test-NAME, make test SUITE=NAME runs the tests, too
	@awk -F ':.*#: ' '/^[a-z0-9-]+:.*#: / { printf "make %-18s %s\n", $$1, $$2 }' Makefile

units: ## LaneMM compiled once, for -FaLaneMM -Fu<the folder that it prints>
	@sh tools/need.sh fpc
	@sh tools/units.sh

demo: ## two demos on the default manager and on LaneMM, side by side
	@sh tools/need.sh fpc
	@sh demos/compare.sh

WIN64 = $(CURDIR)/build/matrix/win64

demo-windows: #: the same two as programs for 64-bit Windows, under wine
	@sh tools/need.sh fpc sources
	@sh tests/matrix/run.sh --prepare win64
	@FPC=$(WIN64)/fpc RUN=$(WIN64)/run OUT=$(WIN64) sh demos/compare.sh

demos: #: all demos, the same way
	@sh tools/need.sh fpc
	@sh demos/compare.sh all

# The suites of make test, or those that SUITE names: SUITE=pages, SUITE='c live'.
test: ## that LaneMM works here: minutes, a compiler and nothing else; SUITE=NAME: one suite, see list
	@sh tools/need.sh fpc gcc
	@SHORT=$(if $(SUITE),,1) sh tools/sum-tests.sh $(if $(SUITE),$(SUITE:%=test-%),test-release test-programs core)

# What these need is installed first: without the rights for that, one line says what is missing.
ALL_TOOLS = fpc gcc g++ lazbuild opkman xvfb-run zip unzip chromium node npm promtool gcore python3 strace \
  redis prometheus tmux pkg-config cmake groff spin go git
ALL_TESTS = test-c test-checked test-programs test-release test-pure test-yield model test-faults \
  test-fuzz test-planted test-paths test-switches core test-pprof test-frameworks test-leakview test-lanemm test-live test-start test-boxes test-servers \
  test-pages test-lazarus test-casts test-interrupted lint-test

test-all: ## all tests that need no rights of root but to install tools
	@sh tools/need.sh $(ALL_TOOLS)
	@sh tools/sum-tests.sh $(ALL_TESTS) -- test-strict

# The suites that build or run most programs, which make test leaves out.
LONG_SUITES = Reports,Profile,DebugMatrix,CompatNames
# Others that build programs and read what these report: with LONG_ONCE only the build that users get is
# tested with them.
REPORT_SUITES = EventLog,DeepStacks,StarvedLeaks,HeapProfile,TimedReports,ReportHead

test-release: #: tests of the build that users get, in the order of a new seed
test-long: #: the four suites of these that make test leaves out
test-checked: #: tests of the build that verifies its own laws, each suite alone
test-pure: #: tests of the build without assembler

test-release test-long core: FLAGS = -O3
test-checked: FLAGS = -dLANEMM_CHECKED -g -gl -Xs-
test-pure: FLAGS = -O3 -dLANEMM_PUREPASCAL

# How the suites run, see build/test-release/RunTests --help; once more in the order of a seed:
# make test-release SEED=N.
test-release core: ORDER = --shuffle $(if $(SEED),--seed=$(SEED)) $(if $(SHORT),--skip=$(LONG_SUITES))
test-long: ORDER = --shuffle $(if $(SEED),--seed=$(SEED)) --suite=$(LONG_SUITES)
COMMA = ,
test-checked: ORDER = --alone $(if $(LONG_ONCE),--skip=$(LONG_SUITES)$(COMMA)$(REPORT_SUITES))

test-release test-long test-checked test-pure:
	@sh tools/need.sh fpc
	@mkdir -p $(OUT)/$@
	@$(FPC) $(FPCFLAGS) $(FLAGS) -Fusrc "-Fusrc/*" -Fulib -Futests "-Futests/*" -FE$(OUT)/$@ -FU$(OUT)/$@ \
	  tests/RunTests.lpr
	@$(RUN) $(OUT)/$@/RunTests $(ORDER) $(if $(WITHOUT),--without=$(WITHOUT))

core: ## the engine alone: built without the other rooms, its tests run on a minimal door
	@sh tools/need.sh fpc
	@rm -rf $(OUT)/core
	@mkdir -p $(OUT)/core/src $(OUT)/core/units
	@cp -R src/core src/LaneMM.inc src/LaneMM.AfterUses.inc $(OUT)/core/src
	@$(FPC) $(FPCFLAGS) $(FLAGS) -Fu$(OUT)/core/src/core -Futests -Futests/core -FE$(OUT)/core \
	  -FU$(OUT)/core/units tests/core/CoreTests.lpr
	@$(RUN) $(OUT)/core/CoreTests $(ORDER) $(if $(WITHOUT),--without=$(WITHOUT))

core-lean: #: the same tests on LaneMMLean
	@sh tools/need.sh fpc
	@mkdir -p $(OUT)/core-lean
	@$(FPC) $(FPCFLAGS) -O3 -dLEAN "-Fusrc/*" -Futests -Futests/core -FE$(OUT)/core-lean -FU$(OUT)/core-lean \
	  tests/core/CoreTests.lpr
	@$(RUN) $(OUT)/core-lean/CoreTests $(ORDER) $(if $(WITHOUT),--without=$(WITHOUT))

core-pure: #: the same without assembler
	@$(MAKE) --no-print-directory core FLAGS='-O3 -dLANEMM_PUREPASCAL' OUT=$(OUT)/pure

test-programs: #: whole programs: threads, fork, libraries, late installation, stress
	@sh tools/need.sh fpc
	@sh tests/run-programs.sh $(PROGRAMS)

test-interrupted: #: one make test at a time in a folder, and that the interrupt key ends it
	@sh tests/interrupted.sh

test-paths: #: one unit path finds all of src/, from anywhere
	@sh tools/need.sh fpc
	@sh tests/unit-paths.sh

test-planted: #: 173 planted mistakes in Pascal, C and C++: debug mode finds them, and nothing else
	@sh tools/need.sh fpc gcc g++
	@sh tests/planted/run.sh --check

security: #: the security programs of a checkout of mimalloc-bench: SUITE=DIRECTORY
	@sh tools/need.sh fpc gcc g++
	@sh bench/security.sh "$(SUITE)"

test-switches: #: the compiler switches of any project, and compiled units in a library
	@sh tools/need.sh fpc
	@sh tests/switches.sh

test-pprof: #: profiles opened with the real pprof, which needs Go
	@sh tools/need.sh fpc
	@sh tests/pprof.sh

test-frameworks: #: leaks and memory errors per test: fpcunit; googletest, check where they can be had
	@sh tools/need.sh fpc gcc g++
	@sh tests/testing/run.sh

test-leakview: #: leaks read by the parser of Lazarus' leak view
	@sh tools/need.sh fpc
	@sh tests/leakview.sh

test-lazarus: build/lanemm #: the packages for Lazarus, a project that requires one, the window of the IDE
	@sh tools/need.sh fpc lazbuild opkman xvfb-run zip unzip python3
	@sh tests/lazarus.sh

test-pages: #: the pages of profiles and leaks in a browser; needs Chromium and npm
	@sh tools/need.sh fpc chromium node npm
	@sh tests/pages/run.sh

pages: #: the Pascal unit that holds the pages, made of the files in src/formats/page
	@sh tools/pages.sh

constants: build/lint/Lint #: the values of the enumerations that LaneMM.pas exports
	@build/lint/Lint --constants > build/constants && mv build/constants src/LaneMM.Constants.inc

stress: ## threads come and go, blocks cross threads, contents are verified; MINUTES=N of CPU, STOP=1 stops threads
	@sh tools/need.sh fpc
	@STRESS="$(strip $(if $(MINUTES),--minutes=$(MINUTES)) $(if $(STOP),--stop))" \
	  sh tests/run-programs.sh Stress

test-yield: #: a build that yields at every atomic operation: unit tests, stress; SEEDS=N, SEED=N
	@sh tools/need.sh fpc
	@SEEDS=$(SEEDS) SEED=$(SEED) sh tests/run-yield.sh

mutants: ## one mistake after the other in src: a test notices each; MUTANTS='NAME...' for some
	@sh tools/need.sh fpc
	@sh tests/mutants/run.sh $(MUTANTS)

faults: #: every kind of system call fails, each time by itself: tests, stress, real C programs
	@sh tools/need.sh fpc gcc
	-@sh tools/need.sh sqlite3 perl git
	@sh tests/faults/run.sh

test-faults: #: the same in short, without real programs
	@sh tools/need.sh fpc
	@sh tests/faults/run.sh --short

fuzz: #: random settings, files of suppressions and damaged executable files; CASES=N, SEED=N
	@sh tools/need.sh fpc gcc
	@sh tests/fuzz/build.sh
	@build/fuzz/Fuzz $(if $(CASES),--cases=$(CASES)) $(if $(SEED),--seed=$(SEED))

test-fuzz: CASES = 400
test-fuzz: fuzz #: the same in short

soak: #: MINUTES=N of mixed work: the resident memory at the rests does not drift; SEED=N
	@sh tools/need.sh fpc
	@mkdir -p build/soak
	@fpc $(FPCFLAGS) -O3 -Fusrc "-Fusrc/*" -Futests -Futests/stress -FEbuild/soak -FUbuild/soak \
	  tests/stress/Soak.lpr
	@build/soak/Soak --csv=build/soak/lows.csv $(if $(MINUTES),--minutes=$(MINUTES)) \
	  $(if $(SEED),--seed=$(SEED))

matrix: #: tests and demos on every target, see docs/platforms.md; TARGETS='NAME...' for some
	@sh tools/need.sh fpc sources
	@sh tests/matrix/run.sh $(TARGETS)

test-matrix: #: the same in short
	@sh tools/need.sh fpc sources
	@sh tests/matrix/run.sh --quick $(TARGETS)

test-windows-page: #: docs/start-windows.md to the letter, under wine
	@sh tools/need.sh fpc sources
	@sh tests/matrix/windows-page.sh

test-casts: #: each difference of words in src/ has its cast, seen in the code for i386
	@sh tools/need.sh fpc
	@sh tests/matrix/wide.sh

test-refused: #: targets that no test runs on do not compile; what a port needs is written
	@sh tools/need.sh fpc sources
	@sh tests/matrix/refused.sh

test-together: #: runs of make matrix at the same time do not disturb each other
	@sh tests/matrix/together.sh

selfcompile: #: the Free Pascal compiler on LaneMM compiles itself; every file compared
	@sh tools/need.sh fpc sources
	@sh tools/selfcompile.sh

test-suite: #: a sample of Free Pascal's own test suite: the same plainly and with LaneMM
	@sh tools/need.sh fpc gcc sources
	@JOBS=2 sh tests/suite/run.sh --sample --modes "- debug hard"

fpc-suite: #: all of it that can run, in seven modes; takes an hour
	@sh tools/need.sh fpc gcc sources
	@sh tests/suite/run.sh --modes "- debug debug,guard=pages hard leaks erase=free lean"

bench-quick: ## first numbers against other memory managers
	@sh tools/need.sh fpc
	-@sh tools/need.sh mimalloc
	@sh bench/run.sh quick

bench: #: the whole suite against all managers that can be had; takes about an hour
	@sh tools/need.sh fpc
	@sh bench/run.sh full

callcount: #: instructions per operation, counted by valgrind
	@sh tools/need.sh fpc valgrind
	@sh bench/callcount.sh

lines: #: cache lines that threads take from each other per operation, beside mimalloc 3 and snmalloc
	@sh tools/need.sh fpc valgrind
	@sh bench/lines.sh

lock-sections: #: how long each lock of the engine is held: instructions, and system calls
	@sh tools/need.sh fpc
	@mkdir -p build/locks
	@fpc $(FPCFLAGS) -O3 -Xs- -Fusrc "-Fusrc/*" -Futests -Futests/programs -FEbuild/locks \
	  -FUbuild/locks tests/programs/LockSections.lpr
	@build/locks/LockSections

model: ## the model checker on the protocols of threads; models and code compared
	@sh tools/need.sh spin gcc tcc
	@sh tests/model/run.sh

lint: build/lint/Lint ## the house style, as far as a program can check it
	@sh tests/model/steps.sh --quiet
	@sh tests/mutants/run.sh --check > build/mutants.check || { cat build/mutants.check; exit 1; }
	@sh tools/version.sh --check
	@sh tools/pages.sh --check
	@sh tools/windows-assembler.sh --check
	@git ls-files -s '*.sh' | sed -n 's/^100644.*	//p' | xargs awk \
	  'FNR == 1 && /^#!/ { print FILENAME ":1: a script that is not executable"; found = 1 } END { exit found }'
	@build/lint/Lint

lint-test: build/lint/Lint #: the tests of the linter
	@sh tools/lint-test.sh

# -vm4046: not the warnings that FPC 3.2.2 gives for its own generic dictionaries.
build/lint/Lint: tools/Lint.lpr $(wildcard tools/lint/*.pas)
	@sh tools/need.sh fpc
	@mkdir -p build/lint
	@fpc $(FPCFLAGS) -vm4046 -Futools/lint -FEbuild/lint -FUbuild/lint tools/Lint.lpr

# What was made and what to do with it; make install says that for both.
SAY = @$(if $(filter install,$(MAKECMDGOALS)),:,echo)

lib: ## liblanemm.so and liblanemm.a, the same manager as malloc for any program
	@sh tools/need.sh fpc gcc
	@sh lib/build.sh
	$(SAY) 'built: build/lib/liblanemm.so, build/lib/liblanemm.a'
	$(SAY) 'run a program on it: LD_PRELOAD=$(if $(word 2,$(CURDIR)),,$(CURDIR)/)build/lib/liblanemm.so PROGRAM'
	$(SAY) 'link one with it: make install PREFIX=$$HOME/.local; docs/start-any-program.md has the options'

lanemm: build/lanemm ## the tool that looks at running programs: build/lanemm
	$(SAY) 'built: build/lanemm'
	$(SAY) 'what runs on LaneMM: build/lanemm ps; one of them: build/lanemm top PID; docs/live.md has more'

# Replaced at once: other targets may run it meanwhile. -vm4082: not the warnings that LaneMM.inc turns
# off and Free Pascal 3.2.2 forgets behind a uses clause.
build/lanemm: $(wildcard src/*.* src/*/*.* lib/*.pas tools/lanemm/*.* tools/replay/*.*)
	@sh tools/need.sh fpc
	@mkdir -p build/tool/replay
	@fpc $(FPCFLAGS) -vm4046,4082 -O2 -Fusrc "-Fusrc/*" -Fulib -Futools/lanemm -Futools/replay -FUbuild/tool \
	  -obuild/tool/lanemm tools/lanemm/lanemm.lpr
	@fpc $(FPCFLAGS) -O2 -Xs- -Fusrc "-Fusrc/*" -FUbuild/tool/replay -obuild/tool/replay/lanemm-replay \
	  tools/replay/Replayer.lpr
	@mv build/tool/replay/lanemm-replay build/tool/lanemm build

test-lanemm: ORDER = --shuffle $(if $(SEED),--seed=$(SEED))
test-lanemm: #: the tests of lanemm: processes that run, are stopped or dead; its commands
	@sh tools/need.sh fpc gcc git promtool gcore python3 strace
	@sh tests/lanemm/build.sh
	@build/lanemm-tests/LanemmTests $(ORDER)

test-live: #: requests of lanemm into busy programs in Pascal and C, thousands, and all errors
	@sh tools/need.sh fpc gcc tmux strace
	@sh tests/live/run.sh $(COUNT)

test-start: #: what LaneMM adds to hello world: file, memory, system calls at the start
	@sh tools/need.sh fpc strace
	@sh tests/start.sh

test-boxes: #: programs with a black box, killed at random moments; KILLS=N
	@sh tools/need.sh fpc gcc
	@$(MAKE) --no-print-directory build/lanemm
	@sh tests/boxes/run.sh $(KILLS)

test-servers: #: redis-server and demos/Server under load, looked at with lanemm; Prometheus
	@sh tools/need.sh fpc gcc redis prometheus promtool python3
	@sh tests/servers/run.sh

PREFIX = /usr/local
LIBDIR = $(PREFIX)/lib

install: lib lanemm ## the C library and the tool lanemm, below PREFIX (LIBDIR, DESTDIR)
	@DESTDIR="$(DESTDIR)" sh lib/install.sh --prefix="$(PREFIX)" --libdir="$(LIBDIR)" install

uninstall: #: removes them
	@DESTDIR="$(DESTDIR)" sh lib/install.sh --prefix="$(PREFIX)" --libdir="$(LIBDIR)" uninstall

dist: #: archives of sources and of the library, with bills of materials, in build/dist
	@sh tools/need.sh fpc gcc git xz
	@sh tools/dist.sh

deb: #: Debian packages, in build/deb
	@sh tools/need.sh fpc gcc git xz debhelper
	@sh tools/deb.sh

test-packages: #: archives, fpmake, Debian packages and the pages in clean roots; needs root
	@sh tools/need.sh fpc fppkg gcc git xz debhelper lintian mmdebstrap pkg-config
	@sh tests/packages/run.sh

test-roots: test-roots-12 test-roots-13 #: make demo and make test in clean roots of Debian 12 and 13; needs root
test-roots-12 test-roots-13:
	@sh tools/need.sh mmdebstrap git
	@sh tests/packages/roots.sh $(@:test-roots-%=%)

test-floor: #: the C library on the oldest glibc that it runs on, and with musl; needs root
	@sh tools/need.sh fpc gcc mmdebstrap musl-gcc sources bzip2
	@sh tests/packages/run.sh floor musl

test-formats: #: bills of materials and workflows, by the tools of their formats
	@sh tools/need.sh fpc gcc git xz venv go shellcheck
	@sh tests/packages/run.sh formats

test-c: #: the C library: every function, threads, forks, limits, real programs
	@sh tools/need.sh fpc gcc g++ pkg-config cmake gdb groff
	@sh tests/c/run.sh

test-strict: #: the same where the system does not overcommit; sets that for the whole machine meanwhile
	@sh tools/need.sh fpc gcc g++
	@sh tests/c/run.sh --strict

bench-c: #: the C library against other allocators, by LD_PRELOAD; takes about 20 minutes
	@sh tools/need.sh fpc gcc g++ git
	-@sh tools/need.sh python3 sqlite3 perl cmake redis gawk jq xmllint
	@sh bench/c/run.sh

delphi-syntax: #: all of src/ parsed as Delphi would; names resolved. Needs Java, Maven and a network
	@sh tools/need.sh java mvn
	@sh tools/delphi-syntax/run.sh

seeds: #: each founding requirement by its test or its row of results; ROWS='C4 D2' for some
	@sh tools/need.sh fpc
	@sh tools/seeds.sh $(ROWS)

classes: #: the table of size classes
	@sh tools/need.sh fpc
	@mkdir -p build/classes
	@fpc $(FPCFLAGS) -Fusrc "-Fusrc/*" -FEbuild/classes -FUbuild/classes tools/SizeClassTable.lpr
	@build/classes/SizeClassTable

histogram: #: the sizes that a real program asks for, out of a recorded trace
	@sh tools/need.sh fpc
	@mkdir -p build/classes
	@fpc $(FPCFLAGS) -Futools/replay -FEbuild/classes -FUbuild/classes tools/SizeHistogram.lpr
	@build/classes/SizeHistogram bench/traces/lint.trace

docs: ## the site of the documentation, in build/docs/site; its links are checked
	@sh tools/need.sh pasdoc mkdocs linkchecker
	@sh tools/docs.sh

clean: #: removes build/, and compiled units that lie beside their sources
	rm -rf build
	find src lib -name '*.ppu' -exec rm {} +
	find src lib -name '*.o' -exec rm {} +

.PHONY: security seeds test-planted test-lazarus test-all test-long test-roots test-roots-12 test-roots-13
.PHONY: test-suite fpc-suite test-frameworks help demo demo-windows demos test test-release test-checked test-pure core core-pure test-programs test-pprof
.PHONY: matrix test-matrix test-windows-page test-casts test-refused test-together mutants faults test-faults fuzz test-fuzz soak
.PHONY: test-pages pages test-leakview test-yield stress selfcompile bench bench-quick bench-c lib install uninstall test-c callcount lines lock-sections model lint
.PHONY: test-start core-lean test-boxes test-servers test-live lanemm test-lanemm delphi-syntax lint-test classes histogram docs clean
.PHONY: dist deb test-packages test-floor test-formats
