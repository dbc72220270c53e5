# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
# shellcheck shell=bash
#
# Two hosts in one: network namespaces that reach each other by a pair of virtual Ethernet devices and by
# nothing else. Sourced, not run.

# netns_skip REASON: the kernel or the user does not let it.
netns_skip()
{
	echo "${0##*/}: skipped: $*"
	exit 77
}

# netns_make: sets netns_a and netns_b (namespaces), near and far (their addresses), netns_dev_a and
# netns_dev_b. The caller calls netns_drop when it ends.
netns_make()
{
	local end ns dev said
	command -v ip > /dev/null || netns_skip "there is no ip command (package iproute2)"
	[ "$(id -u)" -eq 0 ] || netns_skip "namespaces need root"
	netns_a=cpr$$-a netns_b=cpr$$-b netns_dev_a=cpr${$}a netns_dev_b=cpr${$}b
	near=10.$((100 + $$ % 100)).$((RANDOM % 250)).1
	far=${near%.1}.2
	said=$(ip netns add "$netns_a" 2>&1) || netns_skip "no network namespaces: $said"
	ip netns add "$netns_b"
	said=$(ip link add "$netns_dev_a" netns "$netns_a" type veth \
		peer name "$netns_dev_b" netns "$netns_b" 2>&1) || netns_skip "no virtual Ethernet: $said"
	for end in "$netns_a $netns_dev_a $near" "$netns_b $netns_dev_b $far"; do
		read -r ns dev end <<< "$end"
		ip -n "$ns" link set lo up
		ip -n "$ns" addr add "$end/24" dev "$dev"
		ip -n "$ns" link set "$dev" up
	done
}

netns_drop()
{
	ip netns del "${netns_a:-}" 2> /dev/null || true
	ip netns del "${netns_b:-}" 2> /dev/null || true
}

# netns_shape NAMESPACE DEVICE QDISC...: packets that leave there pass it, as in "tbf rate 200mbit ..." or
# "netem loss 1% ...". Replacing a qdisc would keep the old one's settings.
netns_shape()
{
	local ns=$1 dev=$2 said
	shift 2
	command -v tc > /dev/null || netns_skip "there is no tc command (package iproute2)"
	tc -n "$ns" qdisc del dev "$dev" root 2> /dev/null || true
	said=$(tc -n "$ns" qdisc add dev "$dev" root "$@" 2>&1) ||
		netns_skip "this kernel has no ${1}: ${said%%$'\n'*}"
}
