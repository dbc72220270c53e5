# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# Pairs of programs on the device model, and what its counters must say. Sourced by hca-*; BUILD is the
# build directory, the arguments are patterns: only pairs whose names contain one of them run.
#
# Expectations are "client:name=value", "server:name=value" or with ">" or "<"; a counter that is not printed
# is 0.
set -u
TOP=$(cd "$(dirname "$0")/../../.." && pwd)
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

# compare EXPECTATION: SIDE:NAME=VALUE, or with > or <; prints what differs.
compare()
{
	local side=${1%%:*} name=${1#*:} want=${1##*[=><]} got
	name=${name%%[=><]*}
	got=$(counter "$side" "$name")
	case $1 in
	*\>*) [ "$got" -gt "$want" ] && return 0 ;;
	*\<*) [ "$got" -lt "$want" ] && return 0 ;;
	*) [ "$got" -eq "$want" ] && return 0 ;;
	esac
	echo "      expected $1, found $got"
	return 1
}

# both SERVER... -- CLIENT...: the two sides, %p is a port; sets rc and server_rc. A listener of rdma_cm is not seen
# from outside: it is given `unseen` seconds instead. A server that exits with 255 and printed the line
# `excused` ended well.
both()
{
	local server words=()
	rc=0 server_rc=0
	integ_free_port
	while [ "$1" != -- ]; do words+=("${1//%p/$port}"); shift; done
	shift
	"${model[@]}" "${words[@]}" > "$dir/server" 2>&1 &
	server=$!
	if [ -n "${unseen:-}" ]; then sleep "$unseen"; else integ_await 100 integ_listening "$port"; fi
	"${model[@]}" "${@//%p/$port}" > "$dir/client" 2>&1 || rc=$?
	[ "$rc" -eq 0 ] || [ -z "${unseen:-}" ] || kill $server 2> /dev/null
	wait $server || server_rc=$?
	[ "$server_rc" -ne 255 ] || [ -z "${excused:-}" ] || ! grep -qxF "$excused" "$dir/server" || server_rc=0
}

# run_pair NAME "MODEL OPTIONS" "EXPECTATIONS" SERVER... -- CLIENT...: where `unseen` was too short they are given more.
run_pair()
{
	local name=$1 options=$2 expected=$3 rc server_rc expectation wrong=0 model
	shift 3
	wanted "$name" || return 0
	command -v "$1" > /dev/null || { echo "skip  $name: $1 is not installed"; return 0; }
	# shellcheck disable=SC2206
	model=("$hca" run --segment "$segment" --stats $options -- timeout -k 1 200)
	both "$@"
	[ "$rc" -eq 0 ] || [ -z "${unseen:-}" ] || unseen=5 both "$@"
	[ "$rc" -eq 0 ] || [ -z "${unseen:-}" ] || unseen=20 both "$@"
	[ "$rc" -eq 0 ] && [ "$server_rc" -eq 0 ] || wrong=1
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
