/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Trial of one path between two hosts, and what its result means: see info_peer.h. */
#include "info/info_peer.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <rdma/fi_errno.h>
#include <sodium.h>

#include "info/info.h"
#include "info/info_child.h"
#include "info/info_fab.h"
#include "info/info_log.h"
#include "info/info_pace.h"

#define TOPIC   "probe"
#define TIMEOUT "10000" /* FI_COPYRPC_PEER_TIMEOUT in ms, unless the user sets one */
/* Several times what a healthy path of one site takes. */
#define NIC_BOUND_NS 100000u
#define UDP_BOUND_NS 1000000u
#define TCP_SECONDS  30 /* for a connection and for each line */

/* ---- both ends ---- */

static void peer_print_addr(const void *name, char text[64])
{
	char host[INET6_ADDRSTRLEN] = "?";
	struct sockaddr_in6 in6;
	struct sockaddr_in in;

	memcpy(&in6, name, sizeof(in6));
	memcpy(&in, name, sizeof(in));
	if (in.sin_family == AF_INET)
		inet_ntop(AF_INET, &in.sin_addr, host, sizeof(host));
	else if (in.sin_family == AF_INET6)
		inet_ntop(AF_INET6, &in6.sin6_addr, host, sizeof(host));
	snprintf(text, 64, "%s port %u", host, ntohs(in.sin_port));
}

static unsigned peer_mtu(const struct info_fab *fab)
{
	const struct fid_nic *nic = fab->info->nic;

	return nic && nic->link_attr ? (unsigned)nic->link_attr->mtu : 0;
}

/* Sends the name of this end and receives that of the other one. Returns whether it has one. */
static bool peer_exchange(struct info_talk *talk, struct info_fab *fab, uint8_t *name,
			  struct info_peer_result *result)
{
	char line[INFO_TALK_LINE], hex[2 * INFO_FAB_ADDR_MAX + 1];
	int ret, err;

	if (result->error) {
		info_talk_send(talk, "fail %d %s", -result->error, fab->step);
	} else {
		result->mtu = peer_mtu(fab);
		peer_print_addr(fab->name, result->here);
		sodium_bin2hex(hex, sizeof(hex), fab->name, sizeof(fab->name));
		info_talk_send(talk, "name %s %u", hex, result->mtu);
	}
	ret = info_talk_recv(talk, line);
	if (result->error)
		return false;
	result->stage = INFO_PEER_OPEN_THERE;
	if (!ret && sscanf(line, "name %128s %u", hex, &result->mtu_there) == 2 &&
	    info_talk_unhex(hex, name, INFO_FAB_ADDR_MAX)) {
		peer_print_addr(name, result->there);
		return true;
	}
	result->error = -EPROTO;
	if (!ret && sscanf(line, "fail %d %31[^\n]", &err, result->step) == 2 && err > 0)
		result->error = -err;
	return false;
}

/* Exchanges messages between the endpoints. */
static void peer_ping(struct info_fab *fab, const uint8_t *name, bool first,
		      struct info_peer_result *result)
{
	result->stage = INFO_PEER_PING;
	result->error = info_fab_connect(fab, name);
	if (!result->error)
		result->error = info_pace_measure(fab, first, &result->pace);
	snprintf(result->step, sizeof(result->step), "%s", fab->step);
	if (!result->error)
		result->stage = INFO_PEER_DONE;
}

void info_peer_path(struct info_talk *talk, const char *path, bool first,
		    struct info_peer_result *result)
{
	uint8_t name[INFO_FAB_ADDR_MAX];
	struct info_fab fab;

	setenv("FI_COPYRPC_PATHS", path, 1);
	setenv("FI_COPYRPC_PEER_TIMEOUT", TIMEOUT, 0);
	unsetenv("FI_COPYRPC_ENDPOINT");
	result->stage = INFO_PEER_OPEN_HERE;
	result->error = info_fab_open(&fab, "copyrpc-rc", NULL);
	snprintf(result->step, sizeof(result->step), "%s", fab.step ? fab.step : "start");
	if (peer_exchange(talk, &fab, name, result))
		peer_ping(&fab, name, first, result);
	info_fab_close(&fab);
}

/* ---- the prober ---- */

struct peer_target {
	const char *host, *port, *path;
};

static void peer_set_timeouts(int fd)
{
	struct timeval limit = { .tv_sec = TCP_SECONDS };

	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit)); /* of connect, too */
}

/* Connects to the listener. Returns a socket, or -1 with stage and error. */
static int peer_connect(const struct peer_target *target, struct info_peer_result *result)
{
	struct addrinfo hints = { .ai_socktype = SOCK_STREAM }, *list = NULL;
	int fd = -1;

	result->stage = INFO_PEER_RESOLVE;
	result->error = getaddrinfo(target->host, target->port, &hints, &list);
	if (result->error)
		return -1;
	result->stage = INFO_PEER_CONNECT;
	for (const struct addrinfo *it = list; it && fd < 0; it = it->ai_next) {
		fd = socket(it->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
		if (fd < 0)
			continue;
		peer_set_timeouts(fd);
		if (!connect(fd, it->ai_addr, it->ai_addrlen))
			continue;
		result->error = errno == EINPROGRESS ? -ETIMEDOUT : -errno;
		close(fd);
		fd = -1;
	}
	freeaddrinfo(list);
	return fd;
}

static int peer_child(void *arg, int out)
{
	const struct peer_target *target = arg;
	struct info_peer_result result = { 0 };
	struct info_talk talk = { .fd = peer_connect(target, &result) };

	info_log_warnings_on();
	if (talk.fd >= 0) {
		result.stage = INFO_PEER_TALK;
		result.error = info_talk_probe(&talk, getenv("FI_COPYRPC_JOB_KEY"), target->path);
		snprintf(result.version, sizeof(result.version), "%s", talk.version);
		if (result.error == -EACCES)
			result.stage = INFO_PEER_KEY;
		else if (!result.error)
			info_peer_path(&talk, target->path, true, &result);
		close(talk.fd);
	}
	return write(out, &result, sizeof(result)) != sizeof(result);
}

/* ---- judgement ---- */

static void peer_judge_tcp(struct info_report *report, const char *host, const char *port,
			   const struct info_peer_result *result)
{
	if (result->stage == INFO_PEER_RESOLVE) {
		info_add(report, INFO_BROKEN, TOPIC, "probe-host", "%s: %s", host,
			 gai_strerror(result->error));
		info_mend(report, "getent hosts %s", host);
	} else if (result->stage == INFO_PEER_TALK || result->error == -ECONNREFUSED) {
		info_add(report, INFO_BROKEN, TOPIC, "probe-no-listener",
			 "%s is reached, but no copyrpc_info --listen is at TCP port %s", host,
			 port);
		info_mend(report, "copyrpc_info --listen --port %s (on %s)", port, host);
	} else {
		info_add(report, INFO_BROKEN, TOPIC, "probe-tcp",
			 "TCP port %s of %s is not reached: %s: a firewall blocks it, or no "
			 "route leads there",
			 port, host, strerror(-result->error));
		info_mend(report, "firewall-cmd --add-port=%s/tcp (as root, on %s); ping %s", port,
			  host, host);
	}
}

static void peer_judge_open(struct info_report *report, const char *host, const char *path,
			    const struct info_peer_result *result)
{
	bool there = result->stage == INFO_PEER_OPEN_THERE;
	const char *side = there ? host : "this host";

	if (!strcmp(path, "nic")) {
		info_add(report, INFO_NOTE, TOPIC, "probe-no-nic",
			 "the path nic was not tried: %s has no RDMA device that copyrpc can use",
			 side);
		return;
	}
	info_add(report, INFO_BROKEN, TOPIC, "probe-endpoint",
		 "path %s: copyrpc opens no endpoint on %s: %s: %s", path, side, result->step,
		 fi_strerror(-result->error));
	info_mend(report, "copyrpc_info (on %s)", side);
}

static void peer_judge_ping(struct info_report *report, const char *host, const char *path,
			    const struct info_peer_result *result)
{
	const char *ports = getenv("FI_COPYRPC_PORTS");

	if (!strcmp(path, "nic")) {
		info_add(report, INFO_SLOW, TOPIC, "probe-nic",
			 "path nic: both hosts have an RDMA device, but no message gets through: "
			 "%s; jobs lose their first operations before they go on over UDP",
			 fi_strerror(-result->error));
		info_mend(report,
			  "ibv_rc_pingpong between both; or export FI_COPYRPC_PATHS=shm,udp");
		return;
	}
	info_add(report, INFO_BROKEN, TOPIC, "probe-blocked",
		 "path udp: %s is reached over TCP, but no UDP packets pass between %s here and "
		 "%s there (%s): a firewall blocks the ports, or these addresses belong to "
		 "networks that are not connected",
		 host, result->here, result->there, fi_strerror(-result->error));
	ports = ports && *ports ? ports : "50000-50999";
	info_mend(report,
		  "on both: export FI_COPYRPC_PORTS=%s; firewall-cmd --add-port=%s/udp, or nft add "
		  "rule inet filter input udp dport %s accept (as root); or choose the network: "
		  "FI_COPYRPC_IFACE",
		  ports, ports, ports);
}

static void peer_judge_done(struct info_report *report, const char *path,
			    const struct info_peer_result *result)
{
	static const struct info_pace_path nic = { TOPIC, "probe-nic-works", "probe-slow",
						   NIC_BOUND_NS, true };
	static const struct info_pace_path udp = { TOPIC, "probe-udp", "probe-slow", UDP_BOUND_NS,
						   true };
	char what[192];

	snprintf(what, sizeof(what), "path %s: %s here, %s there", path, result->here,
		 result->there);
	info_pace_judge(report, !strcmp(path, "nic") ? &nic : &udp, what, &result->pace);
}

static void peer_judge_mtu(struct info_report *report, const char *host,
			   const struct info_peer_result *result)
{
	if (!result->mtu || !result->mtu_there || result->mtu == result->mtu_there)
		return;
	info_add(report, INFO_SLOW, TOPIC, "probe-mtu",
		 "the RDMA port of this host has MTU %u and that of %s %u: the smaller one is used",
		 result->mtu, host, result->mtu_there);
	info_mend(report, "set one MTU on both hosts and the switches between: ip link set dev "
			  "INTERFACE mtu 9000 (as root)");
}

static void peer_judge_version(struct info_report *report, const char *host,
			       const struct info_peer_result *result)
{
	if (!*result->version || !strcmp(result->version, PACKAGE_VERSION) ||
	    info_report_find(report, "probe-version"))
		return;
	info_add(report, INFO_SLOW, TOPIC, "probe-version",
		 "%s has copyrpc %s and this host %s: hosts of a job should have the same", host,
		 result->version, PACKAGE_VERSION);
	info_mend(report, "install copyrpc %s on both", PACKAGE_VERSION);
}

void info_peer_judge(struct info_report *report, const char *host, const char *port,
		     const char *path, const struct info_peer_result *result)
{
	peer_judge_version(report, host, result);
	switch (result->stage) {
	case INFO_PEER_RESOLVE:
	case INFO_PEER_CONNECT:
	case INFO_PEER_TALK: peer_judge_tcp(report, host, port, result); break;
	case INFO_PEER_KEY:
		info_add(report, INFO_BROKEN, TOPIC, "probe-key",
			 "the job key of %s is not that of this shell, and its processes refuse "
			 "each other",
			 host);
		info_mend(report, "pass FI_COPYRPC_JOB_KEY on: mpirun $(copyrpc_env --mpirun)");
		break;
	case INFO_PEER_OPEN_HERE:
	case INFO_PEER_OPEN_THERE: peer_judge_open(report, host, path, result); break;
	case INFO_PEER_PING: peer_judge_ping(report, host, path, result); break;
	case INFO_PEER_DONE: peer_judge_done(report, path, result); break;
	}
	peer_judge_mtu(report, host, result);
}

void info_peer_probe(struct info_report *report, const char *host, const char *port)
{
	static const char *const paths[] = { "udp", "nic" };
	struct info_peer_result result = { 0 };
	struct info_child child;

	for (size_t i = 0; i < sizeof(paths) / sizeof(paths[0]); i++) {
		struct peer_target target = { host, port, paths[i] };

		if (info_child_run(peer_child, &target, 4 * INFO_CHILD_SECONDS, &child) ||
		    !child.ended || child.len != sizeof(result)) {
			info_add(report, INFO_BROKEN, TOPIC, "probe-crash",
				 "path %s: the process that tries it crashes or does not end",
				 paths[i]);
			info_mend(report, "copyrpc_info");
		} else {
			memcpy(&result, child.out, sizeof(result));
			info_peer_judge(report, host, port, paths[i], &result);
		}
		if (i == 0 || result.stage >= INFO_PEER_PING)
			info_log_add(report, child.log);
		info_child_fini(&child);
		if (result.stage <= INFO_PEER_KEY)
			break;
	}
}
