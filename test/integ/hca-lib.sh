# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# Pairs of programs on the device model, and what its counters must say. Sourced by hca-*; BUILD is the
# build directory, the arguments are patterns: only pairs whose names contain one of them run.
#
# Expectations are "client:name=value", "server:name=value" or with ">"; a counter that is not printed
# is 0.
set -u
TOP=$(cd "$(dirname "$0")/../.." && pwd)
. "$TOP/test/integ/lib.sh"
[ -d "${BUILD:-}" ] || integ_die "no build directory: set BUILD"
hca=$BUILD/test/model/copyrpc_hca
[ -x "$hca" ] || integ_die "no $hca: run make"
dir=$(mktemp -d)
segment=$(basename "$0")-$$
failed=0 passed=0
patterns=("$@")
export UCX_MEM_MMAP_HOOK_MODE=none UCX_TLS=rc_mlx5,ud_mlx5 UCX_NET_DEVICES=mlx5_0:1
trap 'rm -rf "$dir"; "$hca" reset --segment "$segment" --force > /dev/null 2>&1' EXIT

wanted()
{
	local pattern
	[ ${#patterns[@]} -gt 0 ] || return 0
	for pattern in "${patterns[@]}"; do
		[[ $1 != *"$pattern"* ]] || return 0
	done
	return 1
}

# counter SIDE NAME: from the line that the model printed.
counter()
{
	local value
	value=$(grep -h '^copyrpc_hca: stats' "$dir/$1" | grep -o " $2=[0-9]*" | tail -n 1)
	value=${value##*=}
	echo "${value:-0}"
}

# compare EXPECTATION: SIDE:NAME=VALUE or SIDE:NAME>VALUE; prints what differs.
compare()
{
	local side=${1%%:*} name=${1#*:} want=${1##*[=>]} got
	name=${name%%[=>]*}
	got=$(counter "$side" "$name")
	case $1 in
	*\>*) [ "$got" -gt "$want" ] && return 0 ;;
	*) [ "$got" -eq "$want" ] && return 0 ;;
	esac
	echo "      expected $1, found $got"
	return 1
}

# call COMMAND...: the client's side. A listener of rdma_cm is not seen from outside: where `unseen` is set, who
# finds nobody tries again, as long as the server lives.
call()
{
	local try rc
	for ((try = 0; try < 100; try++)); do
		rc=0
		"$@" > "$dir/client" 2>&1 || rc=$?
		[ -n "${unseen:-}" ] || break
		case $rc in 0 | 124) break ;; esac
		kill -0 "$server" 2> /dev/null || break
		sleep 0.2
	done
	return $rc
}

# run_pair NAME "MODEL OPTIONS" "EXPECTATIONS" SERVER... -- CLIENT...: %p in a word is a port.
run_pair()
{
	local name=$1 options=$2 expected=$3 rc=0 server_rc=0 server expectation wrong=0
	local server_words=() client_words=() model
	shift 3
	wanted "$name" || return 0
	command -v "$1" > /dev/null || { echo "skip  $name: $1 is not installed"; return 0; }
	integ_free_port
	while [ "$1" != -- ]; do server_words+=("${1//%p/$port}"); shift; done
	shift
	client_words=("${@//%p/$port}")
	# shellcheck disable=SC2206
	model=("$hca" run --segment "$segment" --stats $options -- timeout -k 1 200)
	"${model[@]}" "${server_words[@]}" > "$dir/server" 2>&1 &
	server=$!
	[ -n "${unseen:-}" ] || integ_await 100 integ_listening "$port"
	call "${model[@]}" "${client_words[@]}" || rc=$?
	wait $server || server_rc=$?
	[ $rc -eq 0 ] && [ $server_rc -eq 0 ] || wrong=1
	for expectation in $expected; do
		[ $wrong -eq 0 ] || break
		compare "$expectation" || wrong=2
	done
	verdict "$name (client $rc, server $server_rc)" $wrong
	[ $wrong -ne 1 ] || tail -n 5 "$dir/client" "$dir/server"
}

# verdict WHAT WRONG: counts and says how it went.
verdict()
{
	if [ "$2" -eq 0 ]; then
		passed=$((passed + 1)); echo "ok    ${1%% (*}"
	else
		failed=$((failed + 1)); echo "FAIL  $1"
	fi
}

# pair NAME "MODEL OPTIONS" "EXPECTATIONS" COMMAND...: the same command on both sides, on one of them with
# "localhost" behind it.
pair()
{
	local name=$1 options=$2 expected=$3
	shift 3
	run_pair "$name" "$options" "$expected" "$@" -- "$@" localhost
}
