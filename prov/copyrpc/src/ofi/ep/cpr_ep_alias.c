/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Default flags and aliases: see cpr_ep_alias.h. */
#include "ofi/ep/cpr_ep_alias.h"

#include <rdma/fi_errno.h>
#include <stdlib.h>

#include "ofi/base/cpr_domain.h"
#include "ofi/base/cpr_ep.h"
#include "ofi/base/cpr_offer.h"

void cpr_ep_set_tx_flags(struct cpr_ep *ep, uint64_t flags)
{
	ep->tx_flags = flags;
	ep->send_max = flags & FI_INJECT ? ep->inject_max : CPR_MSG_MAX;
}

/* Returns the one direction that the flags select. */
static int cpr_ep_flags_direction(uint64_t flags, uint64_t *direction)
{
	*direction = flags & (FI_TRANSMIT | FI_RECV);
	return *direction == FI_TRANSMIT || *direction == FI_RECV ? 0 : -FI_EINVAL;
}

int cpr_ep_get_flags(const struct cpr_ep *ep, uint64_t *flags)
{
	uint64_t direction;
	int ret = cpr_ep_flags_direction(*flags, &direction);

	if (!ret)
		*flags = direction == FI_TRANSMIT ? ep->tx_flags : ep->rx_flags;
	return ret;
}

int cpr_ep_set_flags(struct cpr_ep *ep, uint64_t flags)
{
	uint64_t direction, allowed;
	int ret = cpr_ep_flags_direction(flags, &direction);

	if (ret)
		return ret;
	flags &= ~direction;
	allowed = direction == FI_TRANSMIT ? ep->kind->tx_op_flags | (ep->caps & FI_TRIGGER)
					   : CPR_RX_OP_FLAGS;
	if (flags & ~allowed)
		return -FI_EBADFLAGS;
	if (direction == FI_TRANSMIT)
		cpr_ep_set_tx_flags(ep, flags);
	else
		ep->rx_flags = flags;
	if (ep->owner->is_enabled)
		ep->kind->pick_ops(ep);
	return 0;
}

static int cpr_ep_alias_init(struct cpr_ep *alias, const struct cpr_ep *ep, uint64_t flags)
{
	cpr_ep_init_fid(alias, ep->fid.fid.context);
	alias->owner = ep->owner;
	alias->domain = ep->domain;
	alias->kind = ep->kind;
	alias->dgram = ep->dgram;
	alias->core = ep->core;
	alias->dom = ep->dom;
	alias->caps = ep->caps;
	alias->inject_max = ep->inject_max;
	alias->rx_flags = ep->rx_flags;
	cpr_ep_set_tx_flags(alias, ep->tx_flags);
	alias->kind->pick_ops(alias);
	return flags ? cpr_ep_set_flags(alias, flags) : 0;
}

int cpr_ep_alias(struct cpr_ep *ep, const struct fi_alias *arg)
{
	struct cpr_ep *alias;
	int ret;

	if (!ep->owner->is_enabled)
		return -FI_EOPBADSTATE;
	alias = calloc(1, sizeof(*alias));
	if (!alias)
		return -FI_ENOMEM;
	ret = cpr_ep_alias_init(alias, ep, arg->flags);
	if (ret) {
		free(alias);
		return ret;
	}
	cpr_ref_get(&ep->owner->refs);
	pthread_mutex_lock(&alias->domain->changes);
	util_list_push_back(&alias->domain->eps, &alias->domain_link);
	pthread_mutex_unlock(&alias->domain->changes);
	*arg->fid = &alias->fid.fid;
	return 0;
}

int cpr_ep_close_alias(struct cpr_ep *alias)
{
	pthread_mutex_lock(&alias->domain->changes);
	util_list_remove(&alias->domain_link);
	pthread_mutex_unlock(&alias->domain->changes);
	cpr_ref_put(&alias->owner->refs);
	free(alias);
	return 0;
}
