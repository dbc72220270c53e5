/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* May this packet be looked at? The order of docs/datagram-protocol.md, section 7. */
#include "erpc/erpc_pkt.h"
#include "util/bits.h"

static struct erpc_session *erpc_check_no(uint64_t *counter)
{
	(*counter)++;
	return NULL;
}

struct erpc_session *erpc_check(struct erpc_port *port, const struct dev_dgram_in *in,
				struct wire_erpc_hdr *h)
{
	struct erpc_session *s;

	if (UTIL_UNLIKELY(!wire_erpc_get(h, in->data, in->len)))
		return erpc_check_no(&port->stats.rx_malformed);
	s = __atomic_load_n(&port->sessions[h->session], __ATOMIC_ACQUIRE);
	if (UTIL_UNLIKELY(!s))
		return erpc_check_no(&port->stats.rx_no_session);
	if (UTIL_UNLIKELY(h->tag != s->tag))
		return erpc_check_no(&port->stats.rx_bad_token);
	if (UTIL_UNLIKELY(!dev_dgram_is_from(s->ah, in)))
		return erpc_check_no(&port->stats.rx_bad_source);
	if (UTIL_UNLIKELY(s->err))
		return erpc_check_no(&port->stats.rx_bad_state);
	return s;
}

void erpc_pkt_refuse(struct erpc_session *s, enum erpc_verdict verdict)
{
	struct erpc_stats *stats = &s->port->stats;

	switch (verdict) {
	case ERPC_REPEAT: stats->rx_repeats++; break;
	case ERPC_STALE: stats->rx_stale++; break;
	case ERPC_EARLY: stats->rx_early++; break;
	case ERPC_BAD: stats->rx_bad++; break;
	case ERPC_TAKE:
	case ERPC_LAST: break;
	}
}
