/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Connected endpoints for tests: one domain, an event queue, a listener. */
#ifndef CONN_FIXTURE_H
#define CONN_FIXTURE_H

#include <netinet/in.h>

#include "unit/ofi/ofi_fixture.h"

#define CONN_DATA_MAX 512

struct conn_world {
	struct fi_info *info;
	struct fid_fabric *fabric;
	struct fid_domain *domain;
	struct fid_eq *eq;
	struct fid_cq *cq;
	struct fid_pep *pep;
	struct sockaddr_in addr; /* address of pep */
	/* Last event */
	uint32_t event;
	size_t data_len;
	struct fi_eq_err_entry err;
	char err_data[CONN_DATA_MAX];
	union { /* of the last event: entry with its data behind */
		struct fi_eq_cm_entry entry;
		char room[sizeof(struct fi_eq_cm_entry) + CONN_DATA_MAX];
	};
};

/** Opens everything but the listener. */
void conn_world_open(struct conn_world *w, uint32_t api);
void conn_world_close(struct conn_world *w);
void conn_listen(struct conn_world *w);
/** Opens and binds an endpoint, not enabled. */
struct fid_ep *conn_ep(struct conn_world *w, struct fi_info *info);
/** Returns the next event within ten seconds, or -1 for an error (w->err is filled in). */
int conn_event(struct conn_world *w);
/** Returns true if no event arrives for a moment. */
bool conn_is_quiet(struct conn_world *w);
/** Opens and connects two endpoints. */
void conn_pair(struct conn_world *w, struct fid_ep *ep[2]);
void conn_close(struct fid *fid);

#endif
