/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Errors that the pages promise for each call that opens, binds, connects or closes. A case is a
 * page, a line a rule (common/ft_rule.h). crpc_errors_xfer_test has transfers and queues.
 *
 * Not here: -FI_ENOMEM, and overruns of queues, which do not occur where queues grow; the errors of
 * peers that die (crpc_death) or close (crpc_close).
 */
#include "common/ft_rule.h"
#include "util/fi_old.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <rdma/fi_collective.h>
#include <rdma/fi_trigger.h>
#include <stdlib.h>

static struct sockaddr_in address(uint16_t port)
{
	struct sockaddr_in sin = { .sin_family = AF_INET, .sin_port = htons(port) };

	sin.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	return sin;
}

/* ---- fi_getinfo(3), fi_fabric(3) ---- */

static int info_of(const struct ft *ft, const char *node, const char *service, uint64_t flags,
		   struct fi_info *hints)
{
	struct fi_info *info = (void *)1;
	int ret;

	hints->fabric_attr->prov_name = hints->fabric_attr->prov_name
						? hints->fabric_attr->prov_name
						: strdup(ft->opts->provider);
	ret = fi_getinfo(FI_VERSION(1, 17), node, service, flags, hints, &info);
	if (ret && info)
		ft_complain(__FILE__, __LINE__, "no information: info is not set to NULL");
	if (!ret)
		fi_freeinfo(info);
	fi_freeinfo(hints);
	return ret;
}

static struct fi_info *hints_of(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG };

	return ft_fab_hints(ft, &want);
}

/* Sets one member of the hints. */
#define HINT(member, value)                                                                        \
	({                                                                                         \
		struct fi_info *hint_hints = hints_of(ft);                                         \
		hint_hints->member = (value);                                                      \
		info_of(ft, NULL, NULL, 0, hint_hints);                                            \
	})

static void run_getinfo(struct ft *ft)
{
	int found = info_of(ft, NULL, NULL, 0, hints_of(ft));

	if (found == -FI_ENODATA)
		ft_notrun("nothing of this type is offered");
	RULE("what is offered is found", found, 0);
	RULE("no such provider", HINT(fabric_attr->prov_name, strdup("nobody")), -FI_ENODATA);
	RULE("no such fabric", HINT(fabric_attr->name, strdup("nowhere")), -FI_ENODATA);
	RULE("no such domain", HINT(domain_attr->name, strdup("nowhere")), -FI_ENODATA);
	RULE("no such node", info_of(ft, "no such host", NULL, 0, hints_of(ft)), -FI_ENODATA);
	RULE("a name where numbers are wanted",
	     info_of(ft, "localhost", "7", FI_NUMERICHOST, hints_of(ft)), -FI_ENODATA);
	RULE("an unknown capability", HINT(caps, 1ull << 50), -FI_ENODATA);
	RULE("an unknown flag of operations", HINT(tx_attr->op_flags, BAD_FLAG), -FI_ENODATA);
	RULE("an unknown order", HINT(tx_attr->msg_order, 1ull << 60), -FI_ENODATA);
	RULE("longer injected messages", HINT(tx_attr->inject_size, SIZE_MAX), -FI_ENODATA);
	RULE("longer messages", HINT(ep_attr->max_msg_size, SIZE_MAX), -FI_ENODATA);
	RULE("more pieces", HINT(tx_attr->iov_limit, 1 << 20), -FI_ENODATA);
	RULE("more pieces of receives", HINT(rx_attr->iov_limit, 1 << 20), -FI_ENODATA);
	RULE("more data of completions", HINT(domain_attr->cq_data_size, 64), -FI_ENODATA);
	RULE("longer keys", HINT(domain_attr->mr_key_size, 1 << 20), -FI_ENODATA);
	RULE("another protocol", HINT(ep_attr->protocol, 12345), -FI_ENODATA);
	RULE("an unknown type of endpoint", HINT(ep_attr->type, 77), -FI_ENODATA);
	RULE("an unknown format of addresses", HINT(addr_format, 12345), -FI_ENODATA);
	RULE("a newer provider", HINT(fabric_attr->prov_version, 0x7FFF0000), -FI_ENODATA);
	OURS("fi_copyrpc(7): no memory of devices", HINT(caps, FI_MSG | FI_HMEM), -FI_ENODATA);
	OURS("fi_copyrpc(7): no multicast", HINT(caps, FI_MSG | FI_MULTICAST), -FI_ENODATA);
	OURS("fi_copyrpc(7): no shared vectors", HINT(caps, FI_MSG | FI_SHARED_AV), -FI_ENODATA);
}

static void run_fabric(struct ft *ft)
{
	struct fi_wait_attr wait = { .wait_obj = FI_WAIT_UNSPEC, .flags = 1 };
	struct fid_wait *set;
	struct ft_fab fab;
	void *ops;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	RULE("a domain is open", fi_close(&fab.fabric->fid), -FI_EBUSY);
	REFUSED("operations that nobody knows",
		fi_open_ops(&fab.fabric->fid, "nothing of that name", 0, &ops, NULL));
	REFUSED("fi_poll(3): reserved flags", fi_wait_open(fab.fabric, &wait, &set));
	wait = (struct fi_wait_attr){ .wait_obj = 99 };
	REFUSED("fi_poll(3): an unknown object", fi_wait_open(fab.fabric, &wait, &set));
	ft_fab_close(&fab);
}

/* ---- fi_domain(3), fi_mr(3), fi_atomic(3) and fi_collective(3), calls on a domain ---- */

static void run_domain(struct ft *ft)
{
	struct fi_collective_attr coll = { .op = FI_SUM, .datatype = FI_UINT32 };
	struct fi_poll_attr poll_attr = { .flags = 1 };
	struct fid_poll *poll;
	struct ft_fab fab;
	struct fid_eq *eq;
	void *ops;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	RULE("queues are open", fi_close(&fab.domain->fid), -FI_EBUSY);
	RULE("overrides that nobody knows", fi_set_ops(&fab.domain->fid, "x", 0, &ops, NULL),
	     -FI_ENOSYS);
	REFUSED("operations that nobody knows",
		fi_open_ops(&fab.domain->fid, "nothing of that name", 0, &ops, NULL));
	REFUSED("what is not an event queue", fi_domain_bind(fab.domain, &fab.tx_cq->fid, 0));
	FT_OK(fi_eq_open(fab.fabric, &(struct fi_eq_attr){ 0 }, &eq, NULL));
	REFUSED("an unknown flag", fi_domain_bind(fab.domain, &eq->fid, BAD_FLAG));
	FT_CLOSE(eq);
	REFUSED("fi_poll(3): reserved flags", fi_poll_open(fab.domain, &poll_attr, &poll));
	RULE("fi_trigger(3): work that is queued",
	     fi_control(&fab.domain->fid, FI_QUEUE_WORK, &ops), -FI_ENOSYS);
	RULE("fi_collective(3): no such operation", fi_query_collective(fab.domain, 99, &coll, 0),
	     -FI_EOPNOTSUPP);
	coll.datatype = 99;
	RULE("fi_collective(3): no such type",
	     fi_query_collective(fab.domain, FI_ALLREDUCE, &coll, 0), -FI_EOPNOTSUPP);
	ft_fab_close(&fab);
}

static int raw_key(struct fid_mr *mr, size_t room)
{
	uint64_t base;
	uint8_t key[64];

	return fi_mr_raw_attr(mr, &base, key, &room, 0);
}

static void run_mr(struct ft *ft)
{
	struct ft_want want = { .caps = FI_MSG | FI_RMA, .mr_mode = FI_MR_SCALABLE };
	struct fid_mr *mr, *other;
	struct fid_cntr *cntr;
	struct ft_fab fab;
	static char buf[64];

	ft_rule_parts(&fab, ft, want);
	FT_OK(fi_mr_reg(fab.domain, buf, 64, FI_REMOTE_READ, 0, 5, 0, &mr, NULL));
	RULE("a key that is in use",
	     fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 0, 5, 0, &other, NULL), -FI_ENOKEY);
	RULE("flags that are not supported",
	     fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 0, 6, BAD_FLAG, &other, NULL),
	     -FI_EBADFLAGS);
	REFUSED("a reserved offset",
		fi_mr_reg(fab.domain, buf, 1, FI_REMOTE_READ, 1, 6, 0, &other, NULL));
	REFUSED("an unknown right", fi_mr_reg(fab.domain, buf, 1, BAD_FLAG, 0, 6, 0, &other, NULL));
	RULE("a raw key has no room", raw_key(mr, 0), -FI_ETOOSMALL);
	RULE("a raw key has room", raw_key(mr, 64), 0);
	FT_OK(fi_cntr_open(fab.domain, &(struct fi_cntr_attr){ 0 }, &cntr, NULL));
	REFUSED("events of nothing", fi_mr_bind(mr, &cntr->fid, 0));
	REFUSED("what nobody can be bound to", fi_mr_bind(mr, &fab.tx_cq->fid, FI_REMOTE_READ));
	RULE("a region is registered", fi_close(&fab.domain->fid), -FI_EBUSY);
	if (fi_mr_bind(mr, &cntr->fid, FI_REMOTE_READ) == 0)
		RULE("a region counts there", fi_close(&cntr->fid), -FI_EBUSY);
	FT_CLOSE(mr);
	FT_CLOSE(cntr);
	ft_fab_close(&fab);
}

/* ---- fi_av(3) ---- */

static int lookup(struct ft_fab *fab, fi_addr_t addr)
{
	struct sockaddr_storage out;
	size_t len = sizeof(out);

	return fi_av_lookup(fab->av, addr, &out, &len);
}

/* Returns the status that an insertion reports for one address. */
static int status_of(struct ft_fab *fab, const void *addr)
{
	fi_addr_t number = 7;
	int status = -1;

	RULE("what cannot be inserted is not counted",
	     fi_av_insert(fab->av, addr, 1, &number, FI_SYNC_ERR, &status), 0);
	RULE("and has no number", number, FI_ADDR_NOTAVAIL);
	return status > 0;
}

static void run_av(struct ft *ft)
{
	struct fi_av_attr async = { .flags = FI_EVENT };
	struct sockaddr_in good = address(20000), bad = { .sin_family = 77 };
	struct fi_av_attr shared = { .name = "of nobody", .flags = FI_READ };
	struct fid_av *av;
	struct ft_fab fab;
	fi_addr_t addr;

	if (ft->opts->type != FI_EP_RDM)
		ft_notrun("about vectors of IP addresses");
	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	if (fab.info->addr_format != FI_SOCKADDR_IN)
		ft_notrun("about vectors of IPv4 addresses");
	RULE("an address of another family has a status", status_of(&fab, &bad), true);
	RULE("a good one is counted", fi_av_insert(fab.av, &good, 1, &addr, 0, NULL), 1);
	REFUSED("an unknown flag", fi_av_insert(fab.av, &good, 1, &addr, BAD_FLAG, NULL));
	REFUSED("a number that was never given", lookup(&fab, addr + 1000));
	REFUSED("reserved flags", fi_av_remove(fab.av, &addr, 1, 1));
	RULE("a refusal has removed nothing", lookup(&fab, addr), 0);
	FT_OK(fi_av_remove(fab.av, &addr, 1, 0));
	REFUSED("a number that was removed", lookup(&fab, addr));
	REFUSED("... twice", fi_av_remove(fab.av, &addr, 1, 0));
	RULE("no such node is not counted",
	     fi_av_insertsvc(fab.av, "no such host", "7", &addr, 0, NULL), 0);
	FT_OK(fi_av_open(fab.domain, &async, &av, NULL));
	RULE("events and no queue for them", fi_av_insert(av, &good, 1, &addr, 0, NULL), -FI_ENOEQ);
	REFUSED("statuses where there are events",
		fi_av_insert(av, &good, 1, &addr, FI_SYNC_ERR, &(int){ 0 }));
	REFUSED("what is not an event queue", fi_av_bind(av, &fab.tx_cq->fid, 0));
	FT_CLOSE(av);
	OURS("fi_copyrpc(7): no vector has a name", fi_av_open(fab.domain, &shared, &av, NULL),
	     -FI_ENOSYS);
	ft_fab_endpoint(&fab);
	RULE("an endpoint uses it", fi_close(&fab.av->fid), -FI_EBUSY);
	ft_fab_close(&fab);
}

/* ---- fi_endpoint(3) ---- */

static void run_endpoint_early(struct ft *ft)
{
	struct fid_domain *domain;
	struct fid_cq *cq;
	struct ft_fab fab;
	char buf[8];

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	FT_OK(fi_endpoint(fab.domain, fab.info, &fab.ep, NULL));
	RULE("not enabled: fi_send", fi_send(fab.ep, buf, 8, NULL, 0, buf), -FI_EOPBADSTATE);
	RULE("not enabled: fi_inject", fi_inject(fab.ep, buf, 8, 0), -FI_EOPBADSTATE);
	RULE("not enabled: fi_recv", fi_recv(fab.ep, buf, 8, NULL, 0, buf), -FI_EOPBADSTATE);
	FT_OK(fi_domain(fab.fabric, fab.info, &domain, NULL));
	FT_OK(fi_cq_open(domain, &(struct fi_cq_attr){ 0 }, &cq, NULL));
	RULE("an attempt to bind multiple domains",
	     fi_ep_bind(fab.ep, &cq->fid, FI_TRANSMIT | FI_RECV), -FI_EDOMAIN);
	FT_CLOSE(cq);
	FT_CLOSE(domain);
	if (fab.eq)
		OURS("fi_copyrpc(7): no event queue", fi_enable(fab.ep), -FI_ENOEQ);
	if (fab.av)
		OURS("fi_copyrpc(7): no address vector", fi_enable(fab.ep), -FI_ENOAV);
	if (fab.eq)
		FT_OK(fi_ep_bind(fab.ep, &fab.eq->fid, 0));
	if (fab.av)
		FT_OK(fi_ep_bind(fab.ep, &fab.av->fid, 0));
	RULE("no queue", fi_enable(fab.ep), -FI_ENOCQ);
	REFUSED("a queue for nothing", fi_ep_bind(fab.ep, &fab.tx_cq->fid, 0));
	REFUSED("an unknown flag", fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT | BAD_FLAG));
	FT_OK(fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT | FI_RECV));
	FT_OK(fi_enable(fab.ep));
	OURS("enabled twice", fi_enable(fab.ep), -FI_EOPBADSTATE);
	REFUSED("bound too late", fi_ep_bind(fab.ep, &fab.tx_cq->fid, FI_TRANSMIT));
	ft_fab_close(&fab);
}

static int option(struct ft_fab *fab, int level, int name, size_t len)
{
	size_t value;

	return fi_getopt(&fab->ep->fid, level, name, &value, &len);
}

static int set_option(struct ft_fab *fab, int name, const void *value, size_t len)
{
	return fi_setopt(&fab->ep->fid, FI_OPT_ENDPOINT, name, value, len);
}

static int control(struct ft_fab *fab, int command, uint64_t flags)
{
	return fi_control(&fab->ep->fid, command, &flags);
}

static void run_endpoint(struct ft *ft)
{
	struct fi_trigger_xpu xpu = { 0 };
	int p2p = FI_HMEM_P2P_REQUIRED;
	size_t len = sizeof(xpu), one = 1;
	struct ft_fab fab;
	struct ft_op *op;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	ft_fab_endpoint(&fab);
	ft_fab_enable(&fab);
	RULE("the queue is in use", fi_close(&fab.tx_cq->fid), -FI_EBUSY);
	RULE("the domain is in use", fi_close(&fab.domain->fid), -FI_EBUSY);
	REFUSED("an unknown level", option(&fab, 77, FI_OPT_MIN_MULTI_RECV, 8));
	REFUSED("an unknown option", option(&fab, FI_OPT_ENDPOINT, 9999, 8));
	REFUSED("an option's room", option(&fab, FI_OPT_ENDPOINT, FI_OPT_MIN_MULTI_RECV, 1));
	REFUSED("an option that is read only",
		set_option(&fab, FI_OPT_CM_DATA_SIZE, &one, sizeof(one)));
	RULE("access between devices that cannot be supported",
	     set_option(&fab, FI_OPT_FI_HMEM_P2P, &p2p, sizeof(p2p)), -FI_EOPNOTSUPP);
	RULE("triggers by devices that are not supported",
	     fi_getopt(&fab.ep->fid, FI_OPT_ENDPOINT, FI_OPT_XPU_TRIGGER, &xpu, &len),
	     -FI_EOPNOTSUPP);
	REFUSED("flags of both directions", control(&fab, FI_GETOPSFLAG, FI_TRANSMIT | FI_RECV));
	REFUSED("flags of no direction", control(&fab, FI_SETOPSFLAG, FI_COMPLETION));
	REFUSED("an unknown command", control(&fab, 9999, 0));
	if (fab.info->ep_attr->type != FI_EP_MSG) {
		op = ft_recv_post(&fab, false, 0, &one, sizeof(one));
		FT_OK(fi_cancel(&fab.ep->fid, &op->context));
		ft_wait(&fab, op);
		RULE("a cancelled operation", op->err, FI_ECANCELED);
		ft_op_put(&fab, op);
	}
	OURS("fi_copyrpc(7): no scalable endpoints",
	     fi_scalable_ep(fab.domain, fab.info, &(struct fid_ep *){ NULL }, NULL), -FI_ENOSYS);
	ft_fab_close(&fab);
}

/* ---- fi_cm(3) ---- */

static void run_cm_names(struct ft *ft)
{
	char name[FT_NAME_LEN];
	struct fid_mc *mc;
	struct ft_fab fab;
	size_t len = 4;

	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	ft_fab_endpoint(&fab);
	ft_fab_enable(&fab);
	RULE("a name has no room", fi_getname(&fab.ep->fid, name, &len), -FI_ETOOSMALL);
	RULE("and tells how much it needs", len > 4, true);
	len = sizeof(name);
	RULE("a name has room", fi_getname(&fab.ep->fid, name, &len), 0);
	REFUSED("a name that is too short", fi_setname(&fab.ep->fid, name, 1));
	REFUSED("a peer before there is one", fi_getpeer(fab.ep, name, &len));
	OURS("fi_copyrpc(7): no multicast", fi_join(fab.ep, name, 0, &mc, NULL), -FI_ENOSYS);
	REFUSED("an active endpoint does not listen", fi_listen((struct fid_pep *)fab.ep));
	ft_fab_close(&fab);
}

/* Returns the error that the event queue reports for a connection. */
static int event_error(struct ft_fab *fab)
{
	struct fi_eq_err_entry bad = { 0 };
	union {
		struct fi_eq_cm_entry cm;
		uint8_t room[1024];
	} e;

	return -ft_cm_event(fab, &e.cm, sizeof(e), NULL, &bad, ft_deadline(fab) - ft_now());
}

/* Returns an address without a listener: one that was just closed. */
static struct sockaddr_in nobody(struct ft_fab *fab)
{
	struct sockaddr_in sin = { 0 };
	size_t len = sizeof(sin);
	struct fid_pep *pep;

	FT_OK(fi_passive_ep(fab->fabric, fab->info, &pep, NULL));
	FT_OK(fi_pep_bind(pep, &fab->eq->fid, 0));
	FT_OK(fi_listen(pep));
	FT_OK(fi_getname(&pep->fid, &sin, &len));
	FT_CLOSE(pep);
	return sin;
}

static void run_cm_connect(struct ft *ft)
{
	struct sockaddr_in to;
	struct ft_fab fab;
	char data[4096] = { 0 };

	if (ft->opts->type != FI_EP_MSG)
		ft_notrun("for -e msg");
	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	if (fab.info->addr_format != FI_SOCKADDR_IN)
		ft_notrun("about IPv4 addresses");
	to = nobody(&fab);
	ft_fab_endpoint(&fab);
	OURS("fi_copyrpc(7): more data than FI_OPT_CM_DATA_SIZE",
	     fi_connect(fab.ep, &to, data, sizeof(data)), -FI_EINVAL);
	RULE("a request leaves", fi_connect(fab.ep, &to, NULL, 0), 0);
	REFUSED("only once in a lifetime", fi_connect(fab.ep, &to, NULL, 0));
	RULE("a failed request is an error event", event_error(&fab), FI_ECONNREFUSED);
	REFUSED("without a connection nothing is sent", fi_send(fab.ep, data, 1, NULL, 0, NULL));
	REFUSED("there was no request to accept", fi_accept(fab.ep, NULL, 0));
	REFUSED("reserved flags", fi_shutdown(fab.ep, 1));
	RULE("the event queue is in use", fi_close(&fab.eq->fid), -FI_EBUSY);
	ft_fab_close(&fab);
}

static void run_cm_listen(struct ft *ft)
{
	struct fid_pep *pep;
	struct ft_fab fab;
	char small;
	size_t len = 1;

	if (ft->opts->type != FI_EP_MSG)
		ft_notrun("for -e msg");
	ft_rule_parts(&fab, ft, (struct ft_want){ .caps = FI_MSG });
	FT_OK(fi_passive_ep(fab.fabric, fab.info, &pep, NULL));
	OURS("fi_copyrpc(7): no event queue", fi_listen(pep), -FI_ENOEQ);
	REFUSED("a queue of completions", fi_pep_bind(pep, &fab.tx_cq->fid, 0));
	FT_OK(fi_pep_bind(pep, &fab.eq->fid, 0));
	FT_OK(fi_listen(pep));
	REFUSED("there was no request to reject", fi_reject(pep, NULL, NULL, 0));
	RULE("a name has no room", fi_getname(&pep->fid, &small, &len), -FI_ETOOSMALL);
	RULE("the event queue is in use", fi_close(&fab.eq->fid), -FI_EBUSY);
	FT_CLOSE(pep);
	ft_fab_close(&fab);
}

#define PAGE(name, function, sentence) FT_CASE(name, function, sentence, .procs = 1)

static const struct ft_case cases[] = {
	PAGE("fi_getinfo", run_getinfo, "What cannot be met is -FI_ENODATA, and info is NULL."),
	PAGE("fi_fabric", run_fabric, "A fabric in use is not closed."),
	PAGE("fi_domain", run_domain, "A domain in use is not closed; it knows what it has not."),
	PAGE("fi_mr", run_mr, "Keys are unique, flags known, raw keys have room."),
	PAGE("fi_av", run_av, "Bad addresses have a status each; bad numbers are refused."),
	PAGE("fi_endpoint-early", run_endpoint_early, "What is missing is named before fi_enable."),
	PAGE("fi_endpoint", run_endpoint, "Options and commands are known ones."),
	PAGE("fi_cm-names", run_cm_names, "Names need room."),
	PAGE("fi_cm-connect", run_cm_connect, "A request that fails is an error event."),
	PAGE("fi_cm-listen", run_cm_listen, "Requests are there, or refused."),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "Every error that the pages of objects name.", cases,
		       FT_CNT(cases));
}
