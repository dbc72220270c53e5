# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# What the scripts that run programs over copyrpc share. Sourced, not run.
#
# BUILD names the build directory. The module is used where make left it, or, where COPYRPC_ENV names
# an installed copyrpc_env, as that says. COPYRPC_TEST_PROVIDER stands another provider in for
# copyrpc, to test these tests.

integ_provider=${COPYRPC_TEST_PROVIDER:-copyrpc}

# integ_die TEXT: ends with a line that says what is missing.
integ_die()
{
	echo "${0##*/}: $*" >&2
	exit 2
}

# integ_select_libfabric: libfabric finds the module of this build, and nothing else.
integ_select_libfabric()
{
	[ -d "$BUILD" ] || integ_die "no build directory '$BUILD': set BUILD"
	if [ "$integ_provider" != copyrpc ]; then
		export FI_PROVIDER="$integ_provider"
	elif [ -n "${COPYRPC_ENV:-}" ]; then
		eval "$("$COPYRPC_ENV")"
	else
		export FI_PROVIDER_PATH="$BUILD/prov/copyrpc/.libs" FI_PROVIDER=copyrpc
		[ -e "$FI_PROVIDER_PATH/libcopyrpc-fi.so" ] || integ_die "no module in $FI_PROVIDER_PATH"
	fi
}

# integ_select_mpi: Open MPI matches through that provider; one-sided operations become messages
# too (osc pt2pt) instead of going around it through shared windows. 5.0 has no pt2pt: they are
# messages of its own transports.
integ_select_mpi()
{
	integ_select_libfabric
	export OMPI_MCA_pml=cm OMPI_MCA_mtl=ofi OMPI_MCA_osc=pt2pt
	! integ_is_ompi5 || export OMPI_MCA_osc=rdma
	export OMPI_MCA_mtl_ofi_provider_include="$integ_provider"
}

# integ_select_pml: Open MPI's point-to-point is the component of this build, or with COPYRPC_ENV the
# installed one; there is no other candidate. The component asks libfabric for the same provider. After
# integ_select_mpi.
integ_select_pml()
{
	local dir=$BUILD/contrib/openmpi/.libs
	[ -z "${COPYRPC_ENV:-}" ] || dir=$(dirname "$COPYRPC_ENV")/../lib/copyrpc/openmpi
	[ -e "$dir/mca_pml_copyrpc.so" ] || integ_die "no component in $dir"
	export OMPI_MCA_mca_base_component_path=$dir:SYSTEM_DEFAULT:USER_DEFAULT OMPI_MCA_pml=copyrpc
	export PMIX_MCA_mca_base_component_path= # copyrpc_env tells why
	unset OMPI_MCA_mtl OMPI_MCA_mtl_ofi_provider_include
}

# integ_select_btl: Open MPI's one-sided operations are the provider's, by btl ofi, which Debian
# switches off; ONESIDED_OSC_RDMA says so to a program. Of accumulation only compare and swap is the
# network's, unless OMPI_MCA_osc_rdma_acc_use_amo says otherwise: fi_copyrpc(7), "Open MPI". After
# integ_select_mpi.
integ_select_btl()
{
	export OMPI_MCA_osc_rdma_acc_use_amo=${OMPI_MCA_osc_rdma_acc_use_amo:-0}
	export OMPI_MCA_osc=rdma OMPI_MCA_btl=ofi,self ONESIDED_OSC_RDMA=1
}

# integ_share_cores: ranks that find no core of their own sleep while they wait. The last two are for
# mpirun of Open MPI 5.0, which is that of PRRTE.
integ_share_cores()
{
	export OMPI_MCA_rmaps_base_oversubscribe=1 OMPI_MCA_mpi_yield_when_idle=1
	export OMPI_MCA_hwloc_base_binding_policy=none
	export PRTE_MCA_rmaps_default_mapping_policy=:oversubscribe PRTE_MCA_hwloc_default_binding_policy=none
}

# integ_is_ompi5: returns whether mpirun is of Open MPI 5.
integ_is_ompi5()
{
	[[ $(mpirun --version 2> /dev/null) == *'(Open MPI) 5.'* ]]
}

# integ_allow_root: mpirun refuses root unless two variables say that root is meant.
integ_allow_root()
{
	[ "$(id -u)" -ne 0 ] || export OMPI_ALLOW_RUN_AS_ROOT=1 OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1
}

# integ_free_port: sets port to one that no socket has.
integ_free_port()
{
	port=${port:-$((10000 + $$ % 20000))}
	while
		port=$((port + 1))
		grep -qh "$(printf ':%04X ' $port)" /proc/net/tcp /proc/net/tcp6 2> /dev/null
	do :; done
}

# integ_await SECONDS COMMAND...: until it succeeds; false: it does not.
integ_await()
{
	local end=$((SECONDS + $1))
	shift
	until "$@"; do
		[ $SECONDS -lt $end ] || return 1
		sleep 0.05
	done
}

# integ_listening PORT: returns whether a process waits for connections there.
integ_listening()
{
	grep -qh " 0*$(printf ':%04X ' "$1").* 0A " /proc/net/tcp /proc/net/tcp6 2> /dev/null
}

# integ_check_carrier DIR RANKS: the lines that libcarrier left say that RANKS processes sent
# everything through the chosen provider (a stub "a;b" may use a or b below itself). Prints
# what they say.
integ_check_carrier()
{
	cat "$1"/* 2>/dev/null | awk -v want="$integ_provider" -v ranks="$2" '
		$2 > 0 && !index(";" want ";", ";" $1 ";") && $1 != want { other = other " " $1 }
		$1 == want && $2 > 0 { senders++; sent += $2 }
		END {
			printf "carried by %s: %d messages of %d ranks\n", want, sent, senders
			if (other != "" || senders != ranks) {
				printf "expected %d ranks; other carriers:%s\n", ranks, other ? other : " none"
				exit 1
			}
		}'
}

# integ_halves FILE: checks in the output of "copyrpc_hca stat" that each of the two devices of
# each node has moved half of its bytes, but for 5 %. Prints how many.
integ_halves()
{
	awk '
		$1 == "port" {
			for (i = 2; i <= NF; i++)
				if (split($i, pair, "=") == 2)
					value[pair[1]] = pair[2]
			nodes[value["node"]] = 1
			sum = value["wire_bytes_out"] + value["wire_bytes_in"]
			bytes[value["node"], value["device"]] += sum
		}
		END {
			for (node in nodes) {
				one = bytes[node, "mlx5_0"]
				two = bytes[node, "mlx5_1"]
				least = one < two ? one : two
				printf "    node %s: %.0f and %.0f bytes\n", node, one, two
				# Half of the sum is s/2: 5 % of it are s/40.
				good += least > 0 && 40 * least >= 19 * (one + two)
				cnt++
			}
			exit !cnt || good != cnt
		}' "$1"
}
