/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Life, addresses and sleep of a datagram endpoint: see dgram_ep.h. */
#include "dgram/dgram_ep.h"

#include <assert.h>
#include <errno.h>
#include <netinet/in.h>
#include <rdma/fi_errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "dgram/dgram_outage.h"
#include "util/log.h"

static_assert((DGRAM_TX_CNT & (DGRAM_TX_CNT - 1)) == 0, "slots are found by a mask");

static size_t dgram_ep_slots_len(const struct dgram_ep *ep)
{
	return (size_t)DGRAM_TX_CNT * ep->slot_len;
}

/* Maps the send slots. Pages of unused slots cost nothing. */
static int dgram_ep_make_slots(struct dgram_ep *ep)
{
	const struct dev_ops *dev_ops = ep->engine->over->dev_ops;

	ep->slot_len = (uint32_t)util_align_up(ep->dg->mtu, UTIL_CACHE_LINE);
	ep->slots = mmap(NULL, dgram_ep_slots_len(ep), PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (ep->slots == MAP_FAILED) {
		ep->slots = NULL;
		return -FI_ENOMEM;
	}
	if (!dev_ops || !dev_ops->mem_reg)
		return 0;
	return dev_ops->mem_reg(ep->engine->dev, ep->slots, dgram_ep_slots_len(ep), DEV_MEM_LOCAL,
				&ep->slot_mem);
}

static int dgram_ep_make_queue(struct dgram_ep *ep)
{
	uint32_t cnt = (uint32_t)util_pow2_ceil(ep->dg->rx_cnt + DGRAM_BURST);

	ep->queued = calloc(cnt, sizeof(*ep->queued));
	ep->queued_mask = cnt - 1;
	return ep->queued ? 0 : -FI_ENOMEM;
}

/* Computes the endpoint's address as users write it, once. */
static int dgram_ep_make_name(struct dgram_ep *ep, const struct sockaddr *local)
{
	struct dev_desc desc;
	int ret = ep->ops->describe(ep->dg, &desc);
	struct sockaddr_in6 *in6 = (struct sockaddr_in6 *)&ep->name;

	if (ret)
		return ret;
	ep->name_len = ep->engine->over->export(&desc, &ep->name);
	if (local && local->sa_family == AF_INET6)
		in6->sin6_scope_id = ((const struct sockaddr_in6 *)local)->sin6_scope_id;
	return ep->name_len ? 0 : -FI_EINVAL;
}

static int dgram_ep_watch(struct dgram_ep *ep)
{
	int fd = ep->ops->wait_fd(ep->dg);

	return fd < 0 ? 0 : dgram_engine_watch(ep->engine, fd); /* < 0: it has none */
}

static uint16_t dgram_ep_port(const struct sockaddr *local)
{
	if (!local)
		return 0;
	return ntohs(local->sa_family == AF_INET6 ? ((const struct sockaddr_in6 *)local)->sin6_port
						  : ((const struct sockaddr_in *)local)->sin_port);
}

/* Makes what the endpoint has on the device. `local` is NULL unless that is an IP device. */
static int dgram_ep_make(struct dgram_ep *ep, const struct sockaddr *local)
{
	struct dev_dgram_attr attr = {
		.local = local,
		.port = dgram_ep_port(local),
		.rx_cnt = DGRAM_RX_CNT,
		.tx_cnt = DGRAM_TX_CNT,
	};
	int ret = ep->ops->open(ep->engine->dev, &attr, &ep->dg);

	if (!ret)
		ret = dgram_ep_make_slots(ep);
	if (!ret)
		ret = dgram_ep_make_queue(ep);
	if (!ret)
		ret = dgram_ep_make_name(ep, local);
	if (!ret)
		ret = dgram_ep_watch(ep);
	for (uint64_t n = 0; !ret && n < ep->av->end; n++)
		ret = dgram_ep_inserted(ep, n);
	return ret;
}

int dgram_ep_open(struct dgram_engine *engine, const struct dgram_conf *conf, struct dgram_ep **out)
{
	struct dgram_ep *ep;
	int ret = dgram_outage_enter(engine);

	if (ret)
		return ret;
	ep = calloc(1, sizeof(*ep));
	if (!ep)
		return -FI_ENOMEM;
	ep->engine = engine;
	ep->ops = engine->over->ops;
	ep->av = conf->av;
	ep->tx = conf->tx;
	ep->rx = conf->rx;
	ep->min_multi_recv = conf->min_multi_recv;
	ep->prefix = conf->prefix;
	ep->source = conf->source;
	util_list_init(&ep->posted);
	util_list_init(&ep->link);
	util_pool_init(&ep->recvs, sizeof(struct dgram_recv), 64, 0);
	ret = dgram_ep_make(ep, conf->local);
	if (ret) {
		dgram_ep_close(ep);
		return ret;
	}
	util_list_push_back(&engine->eps, &ep->link);
	*out = ep;
	return 0;
}

static void dgram_ep_forget_all(struct dgram_ep *ep)
{
	for (uint64_t n = 0; n < ep->ah_cnt; n++)
		if (ep->ahs[n])
			ep->ops->forget(ep->dg, ep->ahs[n]);
	for (uint32_t i = 0; i < ep->removed_cnt; i++)
		ep->ops->forget(ep->dg, ep->removed[i].ah);
	if (ep->self)
		ep->ops->forget(ep->dg, ep->self);
	free(ep->ahs);
	free(ep->removed);
	ep->ahs = NULL;
	ep->removed = NULL;
	ep->self = NULL;
	ep->ah_cnt = ep->removed_cnt = 0;
}

void dgram_ep_unmake(struct dgram_ep *ep)
{
	if (ep->dg) {
		dgram_ep_forget_all(ep);
		ep->ops->close(ep->dg);
	}
	if (ep->slot_mem)
		ep->engine->over->dev_ops->mem_dereg(ep->engine->dev, ep->slot_mem);
	if (ep->slots)
		munmap(ep->slots, dgram_ep_slots_len(ep));
	dgram_map_fini(&ep->senders);
	free(ep->queued);
	ep->dg = NULL;
	ep->slot_mem = NULL;
	ep->slots = NULL;
	ep->queued = NULL;
	ep->queued_head = ep->queued_cnt = 0;
	ep->burst_cnt = 0;
	ep->self_sent = false;
}

int dgram_ep_remake(struct dgram_ep *ep)
{
	int ret;

	dgram_ep_unmake(ep);
	ep->err = 0; /* for the addresses to be resolved */
	ret = dgram_ep_make(ep, NULL);
	if (ret) {
		dgram_ep_unmake(ep);
		ep->err = -FI_EIO;
	}
	return ret;
}

void dgram_ep_close(struct dgram_ep *ep)
{
	util_list_remove(&ep->link);
	dgram_ep_unmake(ep);
	util_pool_fini(&ep->recvs);
	free(ep);
}

/*
 * Sends an empty datagram to this endpoint with a reported completion. All earlier ones have left
 * by then.
 */
static bool dgram_ep_mark(struct dgram_ep *ep)
{
	struct dev_dgram_out out = { .flags = DEV_DGRAM_REPORT };
	struct dev_desc desc;

	if (!ep->self &&
	    (ep->ops->describe(ep->dg, &desc) || ep->ops->resolve(ep->dg, &desc, &ep->self)))
		return false;
	out.to = ep->self;
	ep->closing = true;
	ep->self_number = ep->dg->tx_posted;
	ep->self_sent = ep->ops->send(ep->dg, &out, 1) == 1;
	return true;
}

bool dgram_ep_is_busy(struct dgram_ep *ep)
{
	if (ep->err || dgram_tx_flush(ep) == -FI_EAGAIN)
		return !ep->err;
	if (ep->dg->tx_done == ep->dg->tx_posted)
		return false;
	if (!ep->self_sent)
		return dgram_ep_mark(ep);
	return !dev_dgram_is_done(ep->dg, ep->self_number);
}

void dgram_ep_fail(struct dgram_ep *ep, int err)
{
	if (ep->err)
		return;
	ep->err = err;
	dgram_rx_fail(ep, err);
	dgram_outage_begin(ep->engine);
}

void dgram_ep_progress(struct dgram_ep *ep)
{
	if (UTIL_UNLIKELY(ep->burst_cnt))
		dgram_tx_flush(ep);
	dgram_rx_poll(ep);
}

int dgram_ep_arm(struct dgram_ep *ep)
{
	if (ep->err)
		return 0; /* No datagram will arrive; the failure was reported */
	if (ep->burst_cnt)
		return -FI_EAGAIN;
	return ep->ops->arm(ep->dg);
}

void dgram_ep_disarm(struct dgram_ep *ep)
{
	if (ep->dg)
		ep->ops->disarm(ep->dg);
}

static void dgram_ep_sender_key(const struct dev_dgram_id *id, struct dgram_key *key)
{
	*key = (struct dgram_key){ .word = { id->word[0], id->word[1], id->word[2] } };
}

uint64_t dgram_ep_sender(const struct dgram_ep *ep, const struct dev_dgram_in *in)
{
	struct dgram_key key;

	if (!ep->source)
		return DGRAM_NONE;
	dgram_ep_sender_key(&in->from, &key);
	return dgram_map_get(&ep->senders, &key);
}

static int dgram_ep_reserve(struct dgram_ep *ep, uint64_t number)
{
	uint64_t cnt = util_pow2_ceil(number + 16);
	struct dev_dgram_ah **ahs;

	if (number < ep->ah_cnt)
		return 0;
	ahs = realloc(ep->ahs, cnt * sizeof(*ahs));
	if (!ahs)
		return -FI_ENOMEM;
	memset(ahs + ep->ah_cnt, 0, (cnt - ep->ah_cnt) * sizeof(*ahs));
	ep->ahs = ahs;
	ep->ah_cnt = cnt;
	return 0;
}

static int dgram_ep_name_sender(struct dgram_ep *ep, const struct dev_dgram_ah *ah, uint64_t number)
{
	struct dgram_key key;

	if (!ep->source)
		return 0;
	dgram_ep_sender_key(&ah->id, &key);
	return dgram_map_put(&ep->senders, &key, number);
}

/*
 * Frees the handles of removed numbers whose datagrams are done. Called at changes of the AV, not
 * by progress: a poll has no instruction to spare for it.
 */
static void dgram_ep_free_removed(struct dgram_ep *ep)
{
	uint32_t cnt = 0;

	while (cnt < ep->removed_cnt && (int32_t)(ep->dg->tx_done - ep->removed[cnt].end) >= 0)
		ep->ops->forget(ep->dg, ep->removed[cnt++].ah);
	if (!cnt)
		return;
	ep->removed_cnt -= cnt;
	memmove(ep->removed, ep->removed + cnt, ep->removed_cnt * sizeof(ep->removed[0]));
}

int dgram_ep_resolve(struct dgram_ep *ep, uint64_t number, struct dev_dgram_ah **out)
{
	struct dev_dgram_ah *ah;
	struct dev_desc desc;
	int ret;

	if (!dgram_av_desc(ep->av, number, &desc))
		return -FI_EINVAL;
	dgram_ep_free_removed(ep);
	ret = dgram_ep_reserve(ep, number);
	if (!ret)
		ret = ep->ops->resolve(ep->dg, &desc, &ah);
	if (ret)
		return ret;
	ret = dgram_ep_name_sender(ep, ah, number);
	if (ret) {
		ep->ops->forget(ep->dg, ah);
		return ret;
	}
	ep->ahs[number] = ah;
	*out = ah;
	return 0;
}

/*
 * Resolves the new address. There may be no route now: a later send tries again and returns the
 * error.
 */
int dgram_ep_inserted(struct dgram_ep *ep, uint64_t number)
{
	struct dev_dgram_ah *ah;
	int ret = 0;

	if (ep->err)
		return 0; /* All are resolved when the device is back */
	if (number >= ep->ah_cnt || !ep->ahs[number])
		ret = dgram_ep_resolve(ep, number, &ah);
	return ret == -FI_ENOMEM ? ret : 0;
}

/* Frees the address handle, later if datagrams in flight may still use it. */
static void dgram_ep_defer_free(struct dgram_ep *ep, struct dev_dgram_ah *ah)
{
	struct dgram_gone *gone;

	dgram_ep_free_removed(ep);
	if (!ep->burst_cnt && ep->dg->tx_done == ep->dg->tx_posted) {
		ep->ops->forget(ep->dg, ah);
		return;
	}
	gone = realloc(ep->removed, (ep->removed_cnt + 1) * sizeof(*gone));
	if (!gone)
		return; /* Leaked until the process ends */
	ep->removed = gone;
	gone[ep->removed_cnt++] =
		(struct dgram_gone){ .ah = ah, .end = ep->dg->tx_posted + ep->burst_cnt };
}

void dgram_ep_removed(struct dgram_ep *ep, uint64_t number)
{
	struct dgram_key key;
	struct dev_dgram_ah *ah = number < ep->ah_cnt ? ep->ahs[number] : NULL;

	if (!ah)
		return;
	ep->ahs[number] = NULL;
	dgram_ep_sender_key(&ah->id, &key);
	if (dgram_map_get(&ep->senders, &key) == number)
		dgram_map_erase(&ep->senders, &key);
	dgram_ep_defer_free(ep, ah);
}
