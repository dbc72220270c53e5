/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Devices' part of sysfs, made as a directory below /dev/shm: one per fabric, link layer, number of
 * devices and node.
 *
 * A tree is made under a temporary name and renamed, so that no process reads an incomplete one.
 * class/infiniband holds a symbolic link into devices/pci..., as in the kernel: UCX checks by its
 * target that the device is on PCI.
 */
#include "model/kernel/krn_sysfs.h"
#include "model/kernel/krn_path.h"
#include "model/fabric/mdl_port.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define GID_FILES 8

const char *const krn_sysfs_pci[MDL_DEV_MAX] = { "0000:00:1d.0", "0000:00:1e.0" };

struct tree {
	char root[128];
	int err;         /* first error */
	uint32_t device; /* number of the device of which files are made */
	/* directories of that device */
	char pci[64], ib[128], port[160], verbs[128];
};

static void choose_device(struct tree *tree, uint32_t device)
{
	tree->device = device;
	snprintf(tree->pci, sizeof(tree->pci), "/sys/devices/pci0000:00/%s", krn_sysfs_pci[device]);
	snprintf(tree->ib, sizeof(tree->ib), "%s/infiniband/mlx5_%u", tree->pci, device);
	snprintf(tree->port, sizeof(tree->port), "%s/ports/1", tree->ib);
	snprintf(tree->verbs, sizeof(tree->verbs), "%s/infiniband_verbs/uverbs%u", tree->pci,
		 device);
}

static void keep_error(struct tree *tree, long result)
{
	if (result < 0 && result != -EEXIST && !tree->err)
		tree->err = (int)result;
}

/* Makes the parent directories of a path of the tree. */
static void make_parents(struct tree *tree, char *path)
{
	for (char *at = path + strlen(tree->root) + 1; (at = strchr(at, '/')); at++) {
		*at = 0;
		keep_error(tree, MDL_RAW2(mkdir, path, 0755));
		*at = '/';
	}
}

/* Writes the file `name` of the directory `dir`. */
__attribute__((format(printf, 4, 5))) static void put_file(struct tree *tree, const char *dir,
							   const char *name, const char *format,
							   ...)
{
	char path[PATH_MAX], text[256];
	va_list args;
	long fd;
	int len;

	snprintf(path, sizeof(path), "%s%s%s", tree->root, dir, name);
	make_parents(tree, path);
	va_start(args, format);
	len = vsnprintf(text, sizeof(text) - 1, format, args);
	va_end(args);
	text[len++] = '\n';
	fd = MDL_RAW4(openat, AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	keep_error(tree, fd);
	if (fd < 0)
		return;
	keep_error(tree, MDL_RAW3(write, fd, text, len));
	MDL_RAW1(close, fd);
}

/* Makes the link `name` of the directory `dir`. */
__attribute__((format(printf, 4, 5))) static void put_link(struct tree *tree, const char *dir,
							   const char *name, const char *format,
							   ...)
{
	char path[PATH_MAX], target[PATH_MAX];
	va_list args;

	va_start(args, format);
	vsnprintf(target, sizeof(target), format, args);
	va_end(args);
	snprintf(path, sizeof(path), "%s%s%s", tree->root, dir, name);
	make_parents(tree, path);
	keep_error(tree, MDL_RAW2(symlink, target, path));
}

static void put_pci(struct tree *tree)
{
	const char *dir = tree->pci, *slot = krn_sysfs_pci[tree->device];

	put_file(tree, dir, "/vendor", "0x15b3");
	put_file(tree, dir, "/device", "0x101b");
	put_file(tree, dir, "/subsystem_vendor", "0x15b3");
	put_file(tree, dir, "/subsystem_device", "0x0007");
	put_file(tree, dir, "/class", "0x020700");
	put_file(tree, dir, "/revision", "0x00");
	put_file(tree, dir, "/modalias", "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00");
	put_file(tree, dir, "/numa_node", "-1");
	put_file(tree, dir, "/local_cpulist", "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	put_file(tree, dir, "/max_link_speed", "16.0 GT/s PCIe");
	put_file(tree, dir, "/max_link_width", "16");
	put_file(tree, dir, "/current_link_speed", "16.0 GT/s PCIe");
	put_file(tree, dir, "/current_link_width", "16");
	put_file(tree, dir, "/uevent", "DRIVER=mlx5_core\nPCI_SLOT_NAME=%s", slot);
	put_link(tree, "/sys/bus/pci/devices/", slot, "../../../devices/pci0000:00/%s", slot);
}

static void put_guid(struct tree *tree, const char *name, uint64_t guid)
{
	put_file(tree, tree->ib, name, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48) & 0xffff,
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
}

/* Makes the link to the device in a class. */
static void put_class(struct tree *tree, const char *class, const char *name)
{
	char dir[64];

	snprintf(dir, sizeof(dir), "/sys/class/%s/", class);
	put_link(tree, dir, name, "../../devices/pci0000:00/%s/%s/%s", krn_sysfs_pci[tree->device],
		 class, name);
}

static void put_verbs(struct tree *tree, const struct mdl_port *port, uint32_t node)
{
	const char *slot = krn_sysfs_pci[tree->device];
	char uverbs[16], name[16];

	snprintf(uverbs, sizeof(uverbs), "uverbs%u", tree->device);
	snprintf(name, sizeof(name), "mlx5_%u", tree->device);
	put_class(tree, "infiniband_verbs", uverbs);
	put_class(tree, "infiniband", name);
	put_file(tree, tree->verbs, "/dev", "%d:%d", KRN_DEV_MAJOR,
		 KRN_DEV_MINOR + (int)tree->device);
	put_file(tree, tree->verbs, "/ibdev", "%s", name);
	put_file(tree, tree->verbs, "/abi_version", "1");
	put_link(tree, tree->verbs, "/device", "../../../%s", slot);
	put_link(tree, tree->ib, "/device", "../../../%s", slot);
	put_file(tree, tree->ib, "/node_type", "1: CA");
	put_guid(tree, "/node_guid", port->guid);
	put_guid(tree, "/sys_image_guid", port->guid);
	put_file(tree, tree->ib, "/fw_ver", "20.31.1014");
	put_file(tree, tree->ib, "/hca_type", "MT4123");
	put_file(tree, tree->ib, "/hw_rev", "0");
	put_file(tree, tree->ib, "/board_id", "MT_0000000223");
	put_file(tree, tree->ib, "/node_desc", "model of a ConnectX, node %u", node);
	put_file(tree, "/dev/infiniband/", uverbs, "%s", "");
}

static void put_gid(struct tree *tree, const struct mdl_port *port, uint32_t index, bool roce)
{
	const uint8_t *gid = port->gid[index];
	char name[64], text[48];
	int used = 0;

	for (int i = 0; i < 16; i += 2)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 i ? ":%02x%02x" : "%02x%02x", gid[i], gid[i + 1]);
	snprintf(name, sizeof(name), "/gids/%u", index);
	put_file(tree, tree->port, name, "%s", text);
	if (!roce)
		return;
	snprintf(name, sizeof(name), "/gid_attrs/types/%u", index);
	put_file(tree, tree->port, name, "%s",
		 port->gid_type[index] == 2 ? "RoCE v2" : "IB/RoCE v1");
}

static void put_port(struct tree *tree, const struct mdl_port *port, bool roce)
{
	const char *dir = tree->port;

	put_file(tree, dir, "/state", "4: ACTIVE");
	put_file(tree, dir, "/phys_state", "5: LinkUp");
	put_file(tree, dir, "/rate", "100 Gb/sec (4X EDR)");
	put_file(tree, dir, "/link_layer", "%s", roce ? "Ethernet" : "InfiniBand");
	put_file(tree, dir, "/lid", "0x%x", port->lid);
	put_file(tree, dir, "/lid_mask_count", "0");
	put_file(tree, dir, "/sm_lid", "0x%x", roce ? 0 : 1);
	put_file(tree, dir, "/sm_sl", "0");
	put_file(tree, dir, "/cap_mask", "0x%08x", roce ? 0x04010000 : 0x2651e848);
	put_file(tree, dir, "/pkeys/0", "0xffff");
	for (uint32_t i = 0; i < GID_FILES; i++)
		put_gid(tree, port, i, roce);
}

static void put_device(struct tree *tree, uint32_t device)
{
	const struct mdl_config *config = mdl_config_get();
	bool roce = config->link == MDL_LINK_ROCE;
	struct mdl_port port = { 0 };

	choose_device(tree, device);
	mdl_port_fill(&port, device * config->nodes + config->node, (enum mdl_link)config->link);
	put_pci(tree);
	put_verbs(tree, &port, config->node);
	put_port(tree, &port, roce);
}

static void put_common(struct tree *tree)
{
	put_file(tree, "/sys/class/infiniband_verbs", "/abi_version", "6");
	put_file(tree, "/sys/class/misc/rdma_cm", "/abi_version", "4");
	put_file(tree, "/sys/class/misc/rdma_cm", "/dev", "10:59");
	put_file(tree, "/dev/infiniband", "/rdma_cm", "%s", "");
}

/* Makes the directory of all trees of the fabric. Returns 0, or -EPERM if it is not ours alone. */
static int make_base(const char *base)
{
	long fd, err = MDL_RAW2(mkdir, base, 0700);

	if (err < 0 && err != -EEXIST)
		return (int)err;
	fd = MDL_RAW4(openat, AT_FDCWD, base, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC, 0);
	if (fd < 0)
		return -EPERM;
	err = mdl_fd_is_own((int)fd, base) ? 0 : -EPERM;
	MDL_RAW1(close, fd);
	return (int)err;
}

int krn_sysfs_make(char *root, size_t size)
{
	const struct mdl_config *config = mdl_config_get();
	bool roce = config->link == MDL_LINK_ROCE;
	struct tree tree = { .err = 0 };
	char base[100], suffix[64];

	if (mdl_segment_path(base, sizeof(base), ".sys") < 0)
		return -ENAMETOOLONG;
	snprintf(suffix, sizeof(suffix), "/%s-%u-%u", roce ? "roce" : "ib", config->devices,
		 config->node);
	if (snprintf(root, size, "%s%s", base, suffix) >= (int)size)
		return -ENAMETOOLONG;
	keep_error(&tree, make_base(base));
	if (tree.err || MDL_RAW4(faccessat, AT_FDCWD, root, F_OK, 0) == 0)
		return tree.err;

	snprintf(tree.root, sizeof(tree.root), "%s/tmp-%ld", base, MDL_RAW0(gettid));
	keep_error(&tree, MDL_RAW2(mkdir, tree.root, 0755));
	put_common(&tree);
	for (uint32_t device = 0; device < config->devices; device++)
		put_device(&tree, device);
	/*
	 * If another process was faster, its tree is used. This one stays until the fabric is
	 * reset.
	 */
	if (!tree.err)
		MDL_RAW2(rename, tree.root, root);
	return tree.err;
}
