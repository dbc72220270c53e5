/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Choosing, opening and probing an RDMA device (ib_dev.h). */
#include "dev/ib/ib_dev.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <rdma/fi_errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "dev/ib/ib_fork.h"
#include "dev/ib/ib_gid.h"
#include "dev/ib/ib_port.h"
#include "util/log.h"
#include "util/param.h"

#define IB_DEV_LIST_GAPS ", "
#define IB_GID_CNT_MAX   1024u
#define IB_RD_ATOMIC_MAX 16 /* more speeds up nothing and costs device memory */

bool ib_dev_exists(void)
{
	int cnt = 0;
	struct ibv_device **list = ibv_get_device_list(&cnt);

	if (list)
		ibv_free_device_list(list);
	return list && cnt;
}

/* Logs that the port lacks the GID that the user wants. */
static void ib_dev_warn_gid(const struct ib_dev *dev)
{
	if (util_params.gid_index)
		UTIL_WARN_SELDOM(DOMAIN,
				 "FI_COPYRPC_GID_INDEX=%s: %s has no such GID; ibv_devinfo -v "
				 "lists those that it has\n",
				 util_params.gid_index, dev->name);
}

/*
 * Finds the best GID of the port; `like`, unless NULL, is preferred, and only one of its kind is
 * taken. Returns 0 or -FI_E*.
 */
static int ib_dev_find_gid(const struct ib_dev *dev, const struct ibv_gid_entry *like,
			   struct ibv_gid_entry *entry)
{
	struct ibv_gid_entry *table = calloc(IB_GID_CNT_MAX, sizeof(*table));
	ssize_t cnt;
	int best;

	if (!table)
		return -FI_ENOMEM;
	cnt = ibv_query_gid_table(dev->ctx, table, IB_GID_CNT_MAX, 0);
	for (ssize_t i = 0; i < cnt; i++)
		if (table[i].port_num != dev->port || (like && !ib_gid_is_like(&table[i], like)))
			memset(&table[i].gid, 0, sizeof(table[i].gid));
	best = cnt > 0 ? ib_gid_pick(table, (size_t)cnt) : -1;
	for (ssize_t i = 0; like && i < cnt; i++)
		if (!memcmp(&table[i].gid, &like->gid, sizeof(like->gid)))
			best = (int)i;
	if (best >= 0)
		*entry = table[best];
	free(table);
	return best < 0 ? -FI_EINVAL : 0;
}

/* Chooses the GID that the user requested, or the best one of the port. */
static int ib_dev_choose_gid(struct ib_dev *dev, int requested)
{
	struct ibv_gid_entry entry;
	int ret = 0;

	dev->is_gid_fixed = requested >= 0;
	if (requested < 0 && dev->is_eth) {
		ret = ib_dev_find_gid(dev, NULL, &entry);
	} else if (ibv_query_gid_ex(dev->ctx, dev->port, requested < 0 ? 0 : (uint32_t)requested,
				    &entry, 0)) {
		ib_dev_warn_gid(dev);
		ret = -FI_EINVAL;
	}
	if (ret)
		return ret;
	dev->gid = entry.gid;
	dev->gid_index = (uint8_t)entry.gid_index;
	dev->gid_type = (enum ibv_gid_type)entry.gid_type;
	return 0;
}

static uint8_t ib_dev_rd_atomic(const struct ibv_device_attr *attr)
{
	int cnt = attr->max_qp_rd_atom;

	if (attr->max_qp_init_rd_atom < cnt)
		cnt = attr->max_qp_init_rd_atom;
	if (cnt > IB_RD_ATOMIC_MAX)
		cnt = IB_RD_ATOMIC_MAX;
	return (uint8_t)(cnt < 1 ? 1 : cnt);
}

/* Opens the best port of the device named by the `len` bytes at `name`; len 0: of any device. */
static int ib_dev_find_named(const char *name, size_t len, const struct ib_dev *beside,
			     ib_dev_fits_fn *fits, struct ib_selection *selection,
			     struct ib_port *port, const char **why)
{
	char text[2 * IBV_SYSFS_NAME_MAX];
	int ret;

	*why = NULL;
	snprintf(text, sizeof(text), "%.*s", (int)len, name);
	ret = ib_selection_parse(text, util_params.gid_index, selection);
	if (ret)
		return ret;
	if (beside) {
		selection->beside = ibv_get_device_name(beside->ctx->device);
		selection->beside_port = beside->port;
		selection->beside_layer = beside->port_attr.link_layer;
	}
	return ib_port_open(selection, fits, port, why);
}

/* Opens the port of the first name that has one. Skips blanks and empty names of the list. */
static int ib_dev_find_port(const struct ib_dev *beside, ib_dev_fits_fn *fits,
			    struct ib_selection *selection, struct ib_port *port, const char **why)
{
	const char *at = util_params.device ? util_params.device : "";
	const char *refused = NULL;
	size_t len;
	int ret;

	if (!at[strspn(at, IB_DEV_LIST_GAPS)])
		return ib_dev_find_named("", 0, beside, fits, selection, port, why);
	do {
		at += strspn(at, IB_DEV_LIST_GAPS);
		len = strcspn(at, IB_DEV_LIST_GAPS);
		ret = ib_dev_find_named(at, len, beside, fits, selection, port, why);
		if (ret == -FI_EACCES)
			refused = *why;
		at += len;
	} while (ret && ret != -FI_EINVAL && at[strspn(at, IB_DEV_LIST_GAPS)]);
	/* Missing rights to one of them are what the user has to know of. */
	if (ret == -FI_ENODEV && refused) {
		*why = refused;
		ret = -FI_EACCES;
	}
	return ret;
}

/* Chooses and opens dev->ctx. On errors *why is a text for the log, or NULL if one is logged. */
static int ib_dev_find(struct ib_dev *dev, ib_dev_fits_fn *fits, const struct ib_dev *beside,
		       const char **why)
{
	struct ib_port port;
	struct ib_selection selection;
	int ret;

	memset(dev, 0, sizeof(*dev));
	ret = ib_dev_find_port(beside, fits, &selection, &port, why);
	if (ret)
		return ret;
	dev->ctx = port.ctx;
	dev->port = port.num;
	dev->port_attr = port.attr;
	dev->is_eth = port.attr.link_layer == IBV_LINK_LAYER_ETHERNET;
	dev->relaxed = IBV_ACCESS_RELAXED_ORDERING; /* ignored by kernels without it */
	snprintf(dev->name, sizeof(dev->name), "%s:%u", ibv_get_device_name(port.ctx->device),
		 dev->port);
	*why = "its attributes cannot be read: is libibverbs older than the kernel's driver?";
	if (ibv_query_device_ex(dev->ctx, NULL, &dev->attr)) {
		ret = -FI_EIO;
		goto err_close;
	}
	dev->rd_atomic = ib_dev_rd_atomic(&dev->attr.orig_attr);
	*why = "no usable GID: give its network interface an address, or see FI_COPYRPC_GID_INDEX";
	ret = ib_dev_choose_gid(dev, selection.gid_index);
	if (!ret)
		return 0;

err_close:
	ibv_close_device(dev->ctx);
	dev->ctx = NULL;
	return ret;
}

static void ib_dev_log(const struct ib_dev *dev)
{
	char text[IB_GID_TEXT_MAX];

	UTIL_INFO(DOMAIN, "using %s (%s, %llu Mbit/s), lid %u, gid %u: %s\n", dev->name,
		  dev->is_eth ? "Ethernet" : "InfiniBand",
		  (unsigned long long)(ib_port_speed(dev->port_attr.active_width,
						     dev->port_attr.active_speed) /
				       1000000),
		  dev->port_attr.lid, dev->gid_index, ib_gid_text(&dev->gid, text));
}

int ib_dev_init(struct ib_dev *dev, ib_dev_fits_fn *fits, const struct ib_dev *beside)
{
	const char *why, *named = util_params.device;
	int ret;

	ib_fork_protect();
	ret = ib_dev_find(dev, fits, beside, &why);
	if (ret) {
		if (why && !beside && (ret != -FI_ENODEV || (named && !fits)))
			/* An attempt to open a failed device comes every second. */
			UTIL_WARN_SELDOM(DOMAIN, "RDMA device%s%s: %s\n", named ? " " : "",
					 named ? named : "", why);
		else if (why && !beside)
			UTIL_INFO(DOMAIN, "no RDMA device: %s\n", why);
		return ret;
	}
	dev->pd = ibv_alloc_pd(dev->ctx);
	if (!dev->pd) {
		UTIL_WARN_SELDOM(DOMAIN, "%s: no protection domain: %s\n", dev->name,
				 strerror(errno));
		ibv_close_device(dev->ctx);
		return -FI_ENOMEM;
	}
	ib_dev_log(dev);
	return 0;
}

void ib_dev_fini(struct ib_dev *dev)
{
	if (ibv_dealloc_pd(dev->pd))
		UTIL_WARN(DOMAIN, "%s: objects are still open on it\n", dev->name);
	ibv_close_device(dev->ctx);
	memset(dev, 0, sizeof(*dev));
}

struct ib_dev_gid ib_dev_gid(const struct ib_dev *dev)
{
	struct ibv_gid_entry old = { .gid = dev->gid, .gid_type = dev->gid_type }, entry;
	struct ib_dev_gid gid = { dev->gid, dev->gid_index };
	int ret;

	if (!dev->is_eth || !dev->ctx)
		return gid;
	ret = ibv_query_gid_ex(dev->ctx, dev->port, dev->gid_index, &entry, 0);
	if (!dev->is_gid_fixed && (ret || memcmp(&entry.gid, &dev->gid, sizeof(dev->gid))))
		ret = ib_dev_find_gid(dev, &old, &entry);
	if (!ret && ib_gid_is_like(&entry, &old))
		gid = (struct ib_dev_gid){ entry.gid, (uint8_t)entry.gid_index };
	return gid;
}

bool ib_dev_has_moved(const struct ib_dev *dev)
{
	struct ibv_port_attr attr;

	return !dev->is_eth && !ibv_query_port(dev->ctx, dev->port, &attr) && attr.lid &&
	       attr.lid != dev->port_attr.lid;
}

int ib_dev_refuse(const struct ib_dev *dev, const char *what)
{
	int err = errno;
	const char *remedy = "";
	int ret = -FI_EIO;

	if (err == ENOMEM) {
		remedy = ": the device has no more, or memory may not be locked (ulimit -l)";
		ret = -FI_ENOMEM;
	} else if (err == EMFILE || err == ENFILE) {
		remedy = ": raise the limit on open files (ulimit -n)";
		ret = -FI_EMFILE;
	}
	UTIL_WARN(DOMAIN, "%s: no %s: %s%s\n", ib_dev_name(dev), what, strerror(err), remedy);
	return ret;
}

int ib_dev_make_chan(struct ib_dev *dev, struct ibv_comp_channel **chan)
{
	int flags;

	*chan = ibv_create_comp_channel(dev->ctx);
	if (!*chan)
		return ib_dev_refuse(dev, "completion channel");
	flags = fcntl((*chan)->fd, F_GETFL);
	if (flags < 0 || fcntl((*chan)->fd, F_SETFL, flags | O_NONBLOCK))
		return ib_dev_refuse(dev, "non-blocking completion channel");
	return 0;
}

/* Copies the last name of the link if it looks like a PCI address: four numbers. */
static void ib_dev_fill_pci(const struct ibv_device *device, struct dev_about *about)
{
	char link[PATH_MAX], path[PATH_MAX];
	unsigned n[4];
	const char *last;
	ssize_t len;

	snprintf(link, sizeof(link), "%s/device", device->ibdev_path);
	len = readlink(link, path, sizeof(path) - 1);
	if (len < 0)
		return;
	path[len] = '\0';
	last = strrchr(path, '/');
	last = last ? last + 1 : path;
	if (strlen(last) < sizeof(about->pci) &&
	    sscanf(last, "%x:%x:%x.%x", &n[0], &n[1], &n[2], &n[3]) == 4)
		strcpy(about->pci, last);
}

static void ib_dev_fill_about(const struct ib_dev *dev, struct dev_about *about)
{
	char gid[IB_GID_TEXT_MAX];

	memset(about, 0, sizeof(*about));
	snprintf(about->name, sizeof(about->name), "%s", ibv_get_device_name(dev->ctx->device));
	snprintf(about->version, sizeof(about->version), "%s", dev->attr.orig_attr.fw_ver);
	snprintf(about->state, sizeof(about->state), "active");
	snprintf(about->link, sizeof(about->link), dev->is_eth ? "Ethernet" : "InfiniBand");
	if (dev->is_eth)
		snprintf(about->addr, sizeof(about->addr), "%s", ib_gid_text(&dev->gid, gid));
	else
		snprintf(about->addr, sizeof(about->addr), "lid %u", dev->port_attr.lid);
	ib_dev_fill_pci(dev->ctx->device, about);
	about->vendor_id = dev->attr.orig_attr.vendor_id;
	about->device_id = dev->attr.orig_attr.vendor_part_id;
	memcpy(about->gid, dev->gid.raw, sizeof(about->gid));
	about->lid = dev->is_eth ? 0 : dev->port_attr.lid;
	about->mtu = 128ull << dev->port_attr.active_mtu;
	about->speed = ib_port_speed(dev->port_attr.active_width, dev->port_attr.active_speed);
}

/** Result of a probe, and the settings that it depends on. */
struct ib_probe {
	bool valid;
	ib_dev_fits_fn *fits;
	const char *device, *gid_index;
	struct dev_about about;
};

#define IB_PROBES 2u

static struct ib_probe *ib_probe_slot(ib_dev_fits_fn *fits)
{
	static struct ib_probe probes[IB_PROBES];
	struct ib_probe *p = &probes[0];

	for (unsigned i = 0; i < IB_PROBES && p->valid && p->fits != fits; i++)
		p = &probes[i];
	if (p->fits != fits || p->device != util_params.device ||
	    p->gid_index != util_params.gid_index)
		*p = (struct ib_probe){ .fits = fits,
					.device = util_params.device,
					.gid_index = util_params.gid_index };
	return p;
}

int ib_dev_probe(ib_dev_fits_fn *fits, struct dev_about *about)
{
	static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
	const char *why;
	struct ib_probe *p;
	struct ib_dev dev;
	int ret = 0;

	pthread_mutex_lock(&lock);
	p = ib_probe_slot(fits);
	if (!p->valid && ib_dev_exists() && !ib_dev_find(&dev, fits, NULL, &why)) {
		ib_dev_fill_about(&dev, &p->about);
		p->valid = true;
		ibv_close_device(dev.ctx);
	}
	if (p->valid)
		*about = p->about;
	else
		ret = -FI_ENODEV;
	pthread_mutex_unlock(&lock);
	return ret;
}
