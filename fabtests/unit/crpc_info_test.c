/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * fi_getinfo: every result is complete, an offered feature is there when it is requested, and a
 * feature that is not offered is refused with -FI_ENODATA.
 *
 * Pages: fi_getinfo(3), fi_endpoint(3), fi_domain(3), fi_fabric(3).
 */
#include "common/ft_fab.h"
#include "util/fi_old.h"

#include <stdlib.h>
#include <string.h>

#define API FI_VERSION(1, 17)

static const uint64_t primaries = FI_MSG | FI_RMA | FI_TAGGED | FI_ATOMIC | FI_MULTICAST |
				  FI_NAMED_RX_CTX | FI_DIRECTED_RECV | FI_HMEM | FI_COLLECTIVE |
				  FI_VARIABLE_MSG;

/* Returns the offer for hints that name nothing but the type. */
static struct fi_info *offer(struct ft *ft, struct fi_info **hints)
{
	struct fi_info *info;

	*hints = ft_fab_hints(ft, &(struct ft_want){ 0 });
	(*hints)->caps = 0;
	if (fi_getinfo(API, NULL, NULL, 0, *hints, &info))
		ft_notrun("the provider has no such endpoint");
	return info;
}

static void run_whole(struct ft *ft)
{
	struct fi_info *hints, *first = offer(ft, &hints), *info;

	for (info = first; info; info = info->next) {
		FT_CHECK(info->tx_attr && info->rx_attr && info->ep_attr && info->domain_attr &&
				 info->fabric_attr,
			 "an attribute is missing");
		FT_CHECK(info->fabric_attr->name && info->fabric_attr->prov_name &&
				 info->domain_attr->name,
			 "a name is missing");
		FT_CHECK(info->src_addr && info->src_addrlen, "no source address");
		FT_CHECK(info->ep_attr->type == ft->opts->type, "another type of endpoint");
		FT_CHECK(info->ep_attr->protocol && info->ep_attr->max_msg_size, "no protocol");
		FT_CHECK(!(info->tx_attr->caps & ~info->caps) &&
				 !(info->rx_attr->caps & ~info->caps),
			 "a side has more capabilities than the endpoint");
		FT_CHECK(!(info->mode & ~hints->mode), "a mode is required that was not offered");
		FT_CHECK(!(info->domain_attr->mr_mode & ~hints->domain_attr->mr_mode),
			 "a registration mode is required that was not offered");
		FT_CHECK(info->tx_attr->iov_limit && info->rx_attr->iov_limit &&
				 info->tx_attr->size && info->rx_attr->size,
			 "a limit is 0");
		FT_CHECK(info->domain_attr->cq_cnt && info->domain_attr->ep_cnt, "no objects");
		FT_CHECK(!(info->caps & FI_RMA) || info->tx_attr->rma_iov_limit, "rma_iov_limit");
		FT_CHECK(!(info->tx_attr->msg_order & FI_ORDER_RAW) ||
				 info->ep_attr->max_order_raw_size,
			 "an order without a size");
	}
	fi_freeinfo(first);
	fi_freeinfo(hints);
}

/* A capability requested alone is offered, and no other primary one. */
static void run_caps(struct ft *ft)
{
	struct fi_info *hints, *all = offer(ft, &hints), *info;
	uint64_t base = all->caps & FI_MSG ? FI_MSG : FI_TAGGED;

	for (int bit = 0; bit < 64; bit++) {
		uint64_t cap = 1ULL << bit;
		int ret;

		hints->caps = base | cap;
		ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);
		if (!(all->caps & cap)) {
			FT_ROW(ret, -FI_ENODATA);
		} else {
			FT_RET(ret, 0);
			FT_CHECK(info->caps & cap, "capability %#llx is not there",
				 (unsigned long long)cap);
			FT_CHECK(!(info->caps & primaries & ~hints->caps),
				 "%#llx brings capabilities that were not asked for",
				 (unsigned long long)cap);
		}
		if (!ret)
			fi_freeinfo(info);
	}
	fi_freeinfo(all);
	fi_freeinfo(hints);
}

#define FIELD(attr, name, type)                                                                    \
	{                                                                                          \
#attr "->" #name, offsetof(struct fi_info, attr), offsetof(struct type, name),     \
			sizeof(((struct type *)0)->name)                                           \
	}

/* Minimum values in hints. Counts of objects are only the optimum. */
static const struct field {
	const char *name;
	size_t attr, off, size;
} fields[] = {
	FIELD(tx_attr, inject_size, fi_tx_attr),
	FIELD(tx_attr, iov_limit, fi_tx_attr),
	FIELD(tx_attr, rma_iov_limit, fi_tx_attr),
	FIELD(rx_attr, iov_limit, fi_rx_attr),
	FIELD(ep_attr, max_msg_size, fi_ep_attr),
	FIELD(domain_attr, cq_data_size, fi_domain_attr),
	FIELD(domain_attr, mr_iov_limit, fi_domain_attr),
};

static size_t *field_of(struct fi_info *info, const struct field *field)
{
	char *attr = *(char **)(void *)((char *)info + field->attr);

	return (size_t *)(void *)(attr + field->off);
}

static void run_limits(struct ft *ft)
{
	struct fi_info *hints, *all = offer(ft, &hints), *info;

	for (size_t i = 0; i < FT_CNT(fields); i++) {
		size_t most = *field_of(all, &fields[i]), *ask = field_of(hints, &fields[i]);

		FT_CHECK(fields[i].size == sizeof(size_t), "%s", fields[i].name);
		*ask = most;
		FT_RET(fi_getinfo(API, NULL, NULL, 0, hints, &info), 0);
		if (*field_of(info, &fields[i]) < most)
			ft_complain(__FILE__, __LINE__, "%s: %zu was asked for, %zu is there",
				    fields[i].name, most, *field_of(info, &fields[i]));
		fi_freeinfo(info);
		*ask = most + 1;
		info = NULL;
		if (most != SIZE_MAX && fi_getinfo(API, NULL, NULL, 0, hints, &info) != -FI_ENODATA)
			ft_complain(__FILE__, __LINE__, "%s: %zu are offered, %zu were promised",
				    fields[i].name, most, most + 1);
		fi_freeinfo(info);
		*ask = 0;
	}
	fi_freeinfo(all);
	fi_freeinfo(hints);
}

/* Members that must be exactly as in the hint, or -FI_ENODATA. */
static void run_words(struct ft *ft)
{
	struct fi_info *hints, *info;
	int met = 0, ret;

	fi_freeinfo(offer(ft, &hints));
	for (unsigned threading = FI_THREAD_UNSPEC; threading <= FI_THREAD_ENDPOINT; threading++) {
		for (unsigned progress = FI_PROGRESS_UNSPEC; progress <= FI_PROGRESS_MANUAL;
		     progress++) {
			hints->domain_attr->threading = (enum fi_threading)threading;
			hints->domain_attr->data_progress = (enum fi_progress)progress;
			ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);
			if (ret) {
				FT_RET(ret, -FI_ENODATA);
				continue;
			}
			met++;
			FT_CHECK(
				(!threading || info->domain_attr->threading == threading) &&
					(!progress || info->domain_attr->data_progress == progress),
				"threading %u, progress %u: %d and %d were returned", threading,
				progress, info->domain_attr->threading,
				info->domain_attr->data_progress);
			fi_freeinfo(info);
		}
	}
	FT_CHECK(met, "no threading level is met");
	fi_freeinfo(hints);
}

static void refused(struct fi_info *hints, const char *what)
{
	struct fi_info *info = NULL;
	int ret = fi_getinfo(API, NULL, NULL, 0, hints, &info);

	if (ret != -FI_ENODATA)
		ft_complain(__FILE__, __LINE__, "%s: %d (%s), expected -FI_ENODATA", what, ret,
			    ft_err_name(ret));
	fi_freeinfo(info);
}

static void run_nonsense(struct ft *ft)
{
	struct fi_info *hints, *info = NULL;
	char *name;

	fi_freeinfo(offer(ft, &hints));
#define NONSENSE(field, value)                                                                     \
	do {                                                                                       \
		__typeof__(field) kept_ = (field);                                                 \
		(field) = (value);                                                                 \
		refused(hints, #field);                                                            \
		(field) = kept_;                                                                   \
	} while (0)
	NONSENSE(hints->ep_attr->protocol, 0x7FFFFFF0);
	NONSENSE(hints->addr_format, 0x7FFFFFF0);
	NONSENSE(hints->domain_attr->threading, (enum fi_threading)99);
	NONSENSE(hints->domain_attr->av_type, (enum fi_av_type)99);
	NONSENSE(hints->domain_attr->resource_mgmt, (enum fi_resource_mgmt)99);
	NONSENSE(hints->tx_attr->op_flags, 1ULL << 63);
	NONSENSE(hints->rx_attr->op_flags, 1ULL << 63);
	NONSENSE(hints->tx_attr->comp_order, 1ULL << 63);
	name = strdup("no such name");
	NONSENSE(hints->domain_attr->name, name);
	NONSENSE(hints->fabric_attr->name, name);
	free(name);
	FT_ROW(fi_getinfo(API, "no.such.host.invalid", "7", 0, hints, &info), -FI_ENODATA);
	FT_ROW(fi_getinfo(API, "localhost", "7", FI_NUMERICHOST, hints, &info), -FI_ENODATA);
	fi_freeinfo(hints);
}

/* Opens as many objects as are offered, or 64, all at once. */
static void run_counts(struct ft *ft)
{
	enum { MOST = 64 };
	struct fid_cq *cqs[MOST];
	struct fid_cntr *cntrs[MOST];
	struct fid_ep *eps[MOST];
	struct ft_fab fab;
	size_t cq_cnt, cntr_cnt, ep_cnt;

	ft_fab_find(&fab, ft,
		    &(struct ft_want){ .alone = true,
				       .caps = ft->opts->type == FI_EP_DGRAM ? FI_MSG : 0 });
	ft_fab_domain(&fab);
	cq_cnt = fab.info->domain_attr->cq_cnt < MOST ? fab.info->domain_attr->cq_cnt : MOST;
	cntr_cnt = fab.info->domain_attr->cntr_cnt < MOST ? fab.info->domain_attr->cntr_cnt : MOST;
	ep_cnt = fab.info->domain_attr->ep_cnt < MOST ? fab.info->domain_attr->ep_cnt : MOST;
	for (size_t i = 0; i < cq_cnt; i++)
		FT_OK(fi_cq_open(fab.domain, &(struct fi_cq_attr){ 0 }, &cqs[i], NULL));
	for (size_t i = 0; i < cntr_cnt; i++)
		FT_OK(fi_cntr_open(fab.domain, &(struct fi_cntr_attr){ 0 }, &cntrs[i], NULL));
	for (size_t i = 0; i < ep_cnt; i++)
		FT_OK(fi_endpoint(fab.domain, fab.info, &eps[i], NULL));
	FT_RET(fi_close(&fab.domain->fid), -FI_EBUSY);
	for (size_t i = 0; i < ep_cnt; i++)
		FT_CLOSE(eps[i]);
	for (size_t i = 0; i < cntr_cnt; i++)
		FT_CLOSE(cntrs[i]);
	for (size_t i = 0; i < cq_cnt; i++)
		FT_CLOSE(cqs[i]);
	FT_RET(fi_close(&fab.fabric->fid), -FI_EBUSY);
	FT_CLOSE(fab.domain);
	FT_CLOSE(fab.fabric);
	fi_freeinfo(fab.info);
}

#define ONE .procs = 1

static const struct ft_case cases[] = {
	FT_CASE("whole", run_whole, "Every result has all attributes, within the hints.", ONE),
	FT_CASE("caps", run_caps, "What is offered can be asked for alone; the rest is refused.",
		ONE),
	FT_CASE("limits", run_limits, "A limit that is offered is met, one more is not.", ONE),
	FT_CASE("words", run_words, "Threading and progress come as asked, or not at all.", ONE),
	FT_CASE("nonsense", run_nonsense, "What nobody has is -FI_ENODATA.", ONE),
	FT_CASE("counts", run_counts, "Objects can be opened as often as is offered.", ONE),
};

int main(int argc, char **argv)
{
	return ft_main(argc, argv, "What fi_getinfo says.", cases, FT_CNT(cases));
}
