/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Endpoints of copyrpc that fi_getinfo offers, and what programs get that name no provider.
 *
 * fi_getinfo runs in a child. Warnings of the provider (values out of bounds, interfaces or devices
 * that do not exist) say what to do, and become findings as they are.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "info/info.h"
#include "info/info_child.h"
#include "info/info_filter.h"
#include "info/info_log.h"
#include "info/info_probes.h"

#define TOPIC "offer"
#define API   FI_VERSION(1, 17)

/** Summary of the list, written by the child. */
struct offer {
	int error; /* of fi_getinfo without hints */
	unsigned rc, ud, msg, dgram;
	unsigned major, minor; /* version of the provider */
	char nic[64];
	char first[64]; /* provider that is listed first for reliable endpoints */
};

static void offer_count(struct offer *offer, const struct fi_info *info)
{
	const char *domain = info->domain_attr->name;

	switch (info->ep_attr->type) {
	case FI_EP_MSG: offer->msg++; break;
	case FI_EP_DGRAM: offer->dgram++; break;
	default:
		offer->rc += strstr(domain, "-rc") != NULL;
		offer->ud += strstr(domain, "-ud") != NULL;
	}
	offer->major = FI_MAJOR(info->fabric_attr->prov_version);
	offer->minor = FI_MINOR(info->fabric_attr->prov_version);
	if (info->nic && info->nic->device_attr && info->nic->device_attr->name && !offer->nic[0])
		snprintf(offer->nic, sizeof(offer->nic), "%s", info->nic->device_attr->name);
}

static int offer_child(void *arg, int out)
{
	struct fi_info *list = NULL;
	struct offer offer = { 0 };

	(void)arg;
	info_log_warnings_on();
	offer.error = fi_getinfo(API, NULL, NULL, 0, NULL, &list);
	for (const struct fi_info *it = list; it; it = it->next) {
		if (it->ep_attr->type == FI_EP_RDM && !offer.first[0])
			snprintf(offer.first, sizeof(offer.first), "%s",
				 it->fabric_attr->prov_name);
		if (!strcmp(it->fabric_attr->prov_name, "copyrpc"))
			offer_count(&offer, it);
	}
	fi_freeinfo(list);
	return write(out, &offer, sizeof(offer)) != sizeof(offer);
}

static void offer_judge(struct info *info, const struct offer *offer)
{
	struct info_report *report = &info->report;

	if (!offer->rc && !offer->ud) {
		info_add(report, INFO_BROKEN, TOPIC, "offer-none",
			 "fi_getinfo offers no endpoint of copyrpc (%s): findings above and "
			 "below have the reason",
			 offer->error ? fi_strerror(-offer->error) : "other providers are offered");
		info_mend(report, "FI_LOG_LEVEL=info FI_PROVIDER=copyrpc fi_info");
		return;
	}
	info->provider_runs = true;
	snprintf(info->nic, sizeof(info->nic), "%s", offer->nic);
	info_add(report, INFO_GOOD, TOPIC, "offer",
		 "fi_getinfo offers copyrpc %u.%u: %s%s%s%s%s; RDMA device: %s", offer->major,
		 offer->minor, offer->rc ? "copyrpc-rc" : "", offer->rc && offer->ud ? ", " : "",
		 offer->ud ? "copyrpc-ud" : "", offer->msg ? ", FI_EP_MSG" : "",
		 offer->dgram ? ", FI_EP_DGRAM" : "", offer->nic[0] ? offer->nic : "none");
	if (strcmp(offer->first, "copyrpc") != 0) {
		info_add(report, INFO_NOTE, TOPIC, "offer-not-first",
			 "programs that name no provider get %s, which libfabric lists first",
			 offer->first);
		info_mend(report, "export FI_PROVIDER=copyrpc");
	}
}

/* Compares the provider with the release that this program belongs to. */
static void offer_compare_version(struct info_report *report, const struct offer *offer)
{
	char theirs[32];

	snprintf(theirs, sizeof(theirs), "%u.%u.", offer->major, offer->minor);
	if ((!offer->rc && !offer->ud) || !strncmp(PACKAGE_VERSION, theirs, strlen(theirs)))
		return;
	info_add(report, INFO_SLOW, TOPIC, "provider-version",
		 "the provider has version %u.%u and copyrpc_info %s: an old file may be in the "
		 "way, and hosts with different versions may refuse each other",
		 offer->major, offer->minor, PACKAGE_VERSION);
	info_mend(report, "run make install again, or correct FI_PROVIDER_PATH");
}

void info_probe_offer(struct info *info)
{
	struct info_child child;
	struct offer offer;

	if (info->provider_hidden)
		return;
	if (info_child_run(offer_child, NULL, INFO_CHILD_SECONDS, &child) || !child.ended ||
	    child.len != sizeof(offer)) {
		info_add(&info->report, INFO_BROKEN, TOPIC, "offer-crash",
			 "fi_getinfo %s, in libfabric or in one of its providers",
			 child.ended ? "ended the process" : "does not return");
		info_mend(&info->report,
			  "FI_LOG_LEVEL=debug fi_info (and FI_PROVIDER=copyrpc to try it alone)");
	} else {
		memcpy(&offer, child.out, sizeof(offer));
		offer_judge(info, &offer);
		offer_compare_version(&info->report, &offer);
	}
	info_log_add(&info->report, child.log);
	info_child_fini(&child);
}
