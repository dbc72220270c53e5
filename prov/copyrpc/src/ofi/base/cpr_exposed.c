/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Warning about memory that other hosts can reach: see cpr_exposed.h. */
#include "ofi/base/cpr_exposed.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "core/core_mr.h"
#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "util/job.h"
#include "util/param.h"

bool cpr_exposed_is_public(const struct sockaddr *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;

	if (addr->sa_family == AF_INET6)
		return !IN6_IS_ADDR_LOOPBACK(&in6->sin6_addr);
	return ntohl(in->sin_addr.s_addr) >> 24 != IN_LOOPBACKNET;
}

/* Returns an enabled endpoint that other hosts can reach, or NULL. */
static struct cpr_ep *cpr_exposed_find(struct cpr_domain *domain, struct sockaddr_storage *addr)
{
	for (struct util_list *it = domain->eps.next; it != &domain->eps; it = it->next) {
		struct cpr_ep *ep = UTIL_CONTAINER_OF(it, struct cpr_ep, domain_link);

		if (ep->owner != ep || !ep->is_enabled)
			continue;
		memset(addr, 0, sizeof(*addr));
		ep->kind->addr(ep, addr);
		if (cpr_exposed_is_public((struct sockaddr *)addr))
			return ep;
	}
	return NULL;
}

static void cpr_exposed_warn(const struct sockaddr_storage *addr)
{
	const struct sockaddr_in6 *in6 = (const void *)addr;
	const struct sockaddr_in *in = (const void *)addr;
	char text[INET6_ADDRSTRLEN] = "?";

	inet_ntop(addr->ss_family,
		  addr->ss_family == AF_INET6 ? (const void *)&in6->sin6_addr
					      : (const void *)&in->sin_addr,
		  text, sizeof(text));
	UTIL_WARN_HOST(
		MR,
		"memory is registered for remote access at %s, and there is no job key: any "
		"process of another host that reaches this address and knows the memory's key "
		"can read or write it. Set FI_COPYRPC_JOB_KEY to the same secret in all "
		"processes of the job (copyrpc_env does), or use FI_COPYRPC_PATHS=shm "
		"(logged once)\n",
		text);
}

bool cpr_exposed_check(struct cpr_domain *domain)
{
	static bool is_done;
	struct sockaddr_storage addr;
	struct cpr_ep *ep = NULL;

	if (__atomic_load_n(&is_done, __ATOMIC_RELAXED) || util_params.job_key || domain->dgram ||
	    (util_params.paths && !strcmp(util_params.paths, "shm")))
		return false;
	pthread_mutex_lock(&domain->changes);
	if (domain->main.core.mrs->cnt)
		ep = cpr_exposed_find(domain, &addr);
	pthread_mutex_unlock(&domain->changes);
	if (!ep || __atomic_exchange_n(&is_done, true, __ATOMIC_RELAXED))
		return false;
	cpr_exposed_warn(&addr);
	return true;
}
