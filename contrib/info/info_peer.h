/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Probe between two hosts: copyrpc_info --listen on one of them, --probe on the other.
 *
 * One TCP connection for each path (info_talk.h) carries versions, a proof of the job key and the
 * names of two endpoints. The endpoints are those that a job would have, with the settings of both
 * shells, but for one path (FI_COPYRPC_PATHS). They exchange messages through libfabric.
 */
#ifndef INFO_INFO_PEER_H
#define INFO_INFO_PEER_H

#include "info/info_pace.h"
#include "info/info_talk.h"

#define INFO_PEER_PORT "47474"

struct info_report;

/** Stages of a probe; the last one that was reached tells the failure. */
enum info_peer_stage {
	INFO_PEER_RESOLVE,    /* the name of the host is not known */
	INFO_PEER_CONNECT,    /* the TCP port is not reached */
	INFO_PEER_TALK,       /* another program, or one that ended, is there */
	INFO_PEER_KEY,        /* the job keys differ */
	INFO_PEER_OPEN_HERE,  /* no endpoint on this host */
	INFO_PEER_OPEN_THERE, /* no endpoint on the other host */
	INFO_PEER_PING,       /* no messages between the endpoints */
	INFO_PEER_DONE,
};

/** Result of one path. */
struct info_peer_result {
	enum info_peer_stage stage;
	int error;                /* -FI_E* or -errno; of INFO_PEER_RESOLVE: an EAI_* */
	char step[32];            /* call that failed */
	char version[32];         /* copyrpc of the other host */
	char here[64], there[64]; /* addresses of the endpoints */
	unsigned mtu, mtu_there;  /* of the RDMA ports; 0: none */
	struct info_pace pace;
};

/** Serves probes until the process is interrupted. Returns an exit status after an error. */
int info_peer_listen(const char *port);

/** Tries each path to `host` and adds what was found. */
void info_peer_probe(struct info_report *report, const char *host, const char *port);

/** Adds the finding about the result of a path ("udp" or "nic"). */
void info_peer_judge(struct info_report *report, const char *host, const char *port,
		     const char *path, const struct info_peer_result *result);

/**
 * One end of a path, behind the exchange of versions and keys: opens an endpoint, exchanges names,
 * and messages. Sets `result` from INFO_PEER_OPEN_HERE on.
 */
void info_peer_path(struct info_talk *talk, const char *path, bool first,
		    struct info_peer_result *result);

#endif
