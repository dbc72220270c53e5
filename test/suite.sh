# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# Helpers for the checks of suite.d. Sourced by each of them; run-suite exports TOP, WORK and JOBS.

set -eu -o pipefail
cd "$TOP"

# skip REASON: this check cannot run here.
skip()
{
	echo "$*"
	exit 77
}

# fail WHY: ends the check as failed.
fail()
{
	echo "$*" >&2
	exit 1
}

# need TOOL...: skips where one is not installed.
need()
{
	local tool
	for tool in "$@"; do
		command -v "$tool" > /dev/null || skip "$tool is not installed"
	done
}

# as_users_do: from here on with the libraries that users have, however slowly they start (test/stubs, start_fast).
as_users_do()
{
	export LD_LIBRARY_PATH=$USERS_LIBRARY_PATH
	unset LD_PRELOAD
	slow_start=yes
}

# start_fast: from here on libfabric reads no symbols of the kernel when it starts, as with copyrpc_env --fast-start:
# a tenth of a second of each process.
start_fast()
{
	[ "${slow_start:-no}" = yes ] || export LD_PRELOAD=$BUILD/contrib/start/.libs/libcopyrpc-start.so
}

# forget_fabrics NAME...: when this check ends, these fabrics of the device model leave nothing behind.
forget_fabrics()
{
	fabrics="$*"
	trap drop_fabrics EXIT
}

drop_fabrics()
{
	local fabric
	for fabric in $fabrics; do
		"$BUILD/test/model/copyrpc_hca" reset --segment "$fabric" --force > /dev/null 2>&1 || true
	done
}

# locked NAME COMMAND...: checks run side by side; one of them does this at a time.
locked()
{
	(
		flock 9
		"${@:2}" 9>&-
	) 9> "$WORK/$1.lock"
}

make_once()
{
	local what="${BUILD##*/} $*"
	! grep -qxF -- "$what" "$WORK/made" 2> /dev/null || return 0
	make -s -C "$BUILD" -j"$JOBS" "$@" && echo "$what" >> "$WORK/made"
}

# make_in_build TARGET...: makes it in $BUILD, once in a run: make takes seconds to see that there is nothing to do.
make_in_build()
{
	locked "${BUILD##*/}" make_once "$@"
}

# The check is made with the lock: configure exists before all of its files do.
make_configure()
{
	[ -x "$TOP/configure" ] || "$TOP/autogen.sh"
}

# configure_build FLAG...: a build of an earlier run stays if it was configured likewise.
configure_build()
{
	local how="${SOURCE:-$TOP} $*"
	[ "$(cat "$BUILD.configured" 2> /dev/null)" != "$how" ] || return 0
	rm -rf "$BUILD"
	mkdir -p "$BUILD"
	cd "$BUILD"
	"${SOURCE:-$TOP}/configure" --quiet --prefix="$BUILD/install" "$@"
	echo "$how" > "$BUILD.configured"
}

# configured NAME FLAG...: $WORK/NAME, configured with these flags; nothing is made yet. Sets BUILD. SOURCE is the
# tree of the sources, if not this one.
configured()
{
	export BUILD=$WORK/$1
	shift
	locked autogen make_configure
	locked "${BUILD##*/}" configure_build "$@"
}

configured_main()
{
	configured gcc CC=gcc CFLAGS='-O2 -g1' --enable-werror --enable-maintainer-checks
}

# build_main: the build that users get, as the checks that run programs need it.
build_main()
{
	configured_main
	make_in_build all integ
	start_fast
}

# make_release: $WORK/release, with the files that a release has; once in a run.
make_release()
{
	! grep -qx release "$WORK/made" 2> /dev/null || return 0
	make -s -C "$BUILD" distdir distdir="$WORK/release" && echo release >> "$WORK/made"
}

# build_asan: programs that run with AddressSanitizer and UBSan, those of MPI too. By clang and from the files that a
# release has: clang accepts them, and none is missing. With sanitizers -O1 takes twice as long as -O0, so only what is
# tested has it. Libraries share the runtime with the programs that load them, since a shell loads some, too; unit
# tests contain it.
build_asan()
{
	need clang
	configured_main
	locked "${BUILD##*/}" make_release
	unset LD_PRELOAD # the sanitizer's library comes first
	SOURCE=$WORK/release configured asan CC='clang -shared-libsan' CFLAGS='-O0 -g1' \
		LDFLAGS="-Wl,-rpath,$(clang -print-runtime-dir)" --enable-werror --enable-asan --enable-maintainer-checks
	make_in_build CFLAGS='-O1 -g1' prov/copyrpc/libcopyrpc-fi.la
	make_in_build integ test/model/copyrpc_hca test/model/libcopyrpc_hca.la
}

# borrow BUILD HEADER: the library's objects that do not depend on HEADER, from another build of the same flags but
# for what HEADER asks for: those that do are all that is compiled in $BUILD.
borrow()
{
	(
		cd "$1"
		# Objects depend on the files that stand for their directories.
		find prov/copyrpc/src -name .dirstamp
		find prov/copyrpc/src -name '*.Plo' -exec grep -LF "/$2" {} + |
			sed 's|^\(.*\)/\.deps/\(.*\)\.Plo$|&\n\1/\2.lo\n\1/.libs/\2.o|'
	) | tar -C "$1" -cf - -T - | tar -C "$BUILD" -xf -
}

# With ccache a second run, or one of another checkout, compiles only what has changed since. A first run takes
# longer with it, so it has to be requested.
if [ "${SUITE_CCACHE:-no}" = yes ] && [ -d /usr/lib/ccache ]; then
	export PATH=/usr/lib/ccache:$PATH CCACHE_BASEDIR=$TOP CCACHE_NOHASHDIR=1 CCACHE_DEPEND=1
fi
# Tests are compiled without optimisation, whatever is tested has (test/Makefile.include).
export TEST_OPT=-O0
# A compile is a run of libtool, a script; dash takes half of bash's time for it.
[ ! -x /bin/dash ] || export CONFIG_SHELL=/bin/dash

# build_units: the unit tests of $BUILD and the other programs of "make check", but not, as that does, all else.
build_units()
{
	make_in_build check-TESTS TESTS=
}

# Each unit test is a process, and many a test waits. So each program has several of its tests run at a time:
# that costs little more than one.
export CRITERION_JOBS=${CRITERION_JOBS:-$((3 * JOBS))}

# check_units: every unit test of $BUILD.
check_units()
{
	build_units
	make -s -C "$BUILD" -j"$JOBS" check-TESTS VERBOSE=1
}

# files PATTERN...: the project's own files, one a line, none that were generated. In a release, which
# has no git, those are recognised by their names.
files()
{
	local name pattern
	if [ -e .git ] && command -v git > /dev/null; then
		git ls-files -co --exclude-standard -- "$@"
		return
	fi
	find . \( -path ./build -o -path ./build-aux -o -path ./autom4te.cache \) -prune -o -type f -print |
	sed 's|^\./||' | grep -Evx 'configure~?|aclocal\.m4|Makefile\.in|config/l[it].*\.m4' |
	while read -r name; do
		for pattern; do
			# shellcheck disable=SC2254 # a pattern is what it is
			case $name in $pattern) echo "$name" ;; esac
		done
	done
}

# scripts: the project's own shell scripts, by their first line.
scripts()
{
	files '*' | tr '\n' '\0' | xargs -0 awk '
		FNR > 2 { nextfile }
		/^#! ?\/.*[\/ ](ba|da)?sh( |$)|^# shellcheck shell=/ { print FILENAME; nextfile }'
}
