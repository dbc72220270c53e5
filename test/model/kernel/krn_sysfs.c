/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * Device part of sysfs, made as a directory below /dev/shm: one per fabric, link layer and node.
 *
 * A tree is made under a temporary name and renamed, so that no process reads an incomplete one.
 * class/infiniband holds a symbolic link into devices/pci..., as in the kernel: UCX checks by its
 * target that the device is on PCI.
 */
#include "model/kernel/krn_sysfs.h"
#include "model/fabric/mdl_node.h"
#include "model/fabric/mdl_raw.h"
#include "model/fabric/mdl_segment.h"

#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define PCI_DIR   "/sys/devices/pci0000:00/" KRN_SYSFS_PCI
#define IB_DIR    PCI_DIR "/infiniband/" KRN_SYSFS_DEV
#define PORT_DIR  IB_DIR "/ports/1"
#define UV_DIR    PCI_DIR "/infiniband_verbs/uverbs0"
#define GID_FILES 8

struct tree {
	char root[128];
	int err; /* first error */
};

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

__attribute__((format(printf, 3, 4))) static void put_file(struct tree *tree, const char *name,
							   const char *format, ...)
{
	char path[PATH_MAX], text[256];
	va_list args;
	long fd;
	int len;

	snprintf(path, sizeof(path), "%s%s", tree->root, name);
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

static void put_link(struct tree *tree, const char *name, const char *target)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s%s", tree->root, name);
	make_parents(tree, path);
	keep_error(tree, MDL_RAW2(symlink, target, path));
}

static void put_pci(struct tree *tree)
{
	put_file(tree, PCI_DIR "/vendor", "0x15b3");
	put_file(tree, PCI_DIR "/device", "0x101b");
	put_file(tree, PCI_DIR "/subsystem_vendor", "0x15b3");
	put_file(tree, PCI_DIR "/subsystem_device", "0x0007");
	put_file(tree, PCI_DIR "/class", "0x020700");
	put_file(tree, PCI_DIR "/revision", "0x00");
	put_file(tree, PCI_DIR "/modalias",
		 "pci:v000015B3d0000101Bsv000015B3sd00000007bc02sc07i00");
	put_file(tree, PCI_DIR "/numa_node", "-1");
	put_file(tree, PCI_DIR "/local_cpulist", "0-%ld", sysconf(_SC_NPROCESSORS_CONF) - 1);
	put_file(tree, PCI_DIR "/max_link_speed", "16.0 GT/s PCIe");
	put_file(tree, PCI_DIR "/max_link_width", "16");
	put_file(tree, PCI_DIR "/current_link_speed", "16.0 GT/s PCIe");
	put_file(tree, PCI_DIR "/current_link_width", "16");
	put_file(tree, PCI_DIR "/uevent", "DRIVER=mlx5_core\nPCI_SLOT_NAME=" KRN_SYSFS_PCI);
	put_link(tree, "/sys/bus/pci/devices/" KRN_SYSFS_PCI,
		 "../../../devices/pci0000:00/" KRN_SYSFS_PCI);
}

static void put_guid(struct tree *tree, const char *name, uint64_t guid)
{
	put_file(tree, name, "%04x:%04x:%04x:%04x", (unsigned)(guid >> 48) & 0xffff,
		 (unsigned)(guid >> 32) & 0xffff, (unsigned)(guid >> 16) & 0xffff,
		 (unsigned)guid & 0xffff);
}

static void put_verbs(struct tree *tree, const struct mdl_node *node, uint32_t index)
{
	put_file(tree, "/sys/class/infiniband_verbs/abi_version", "6");
	put_link(tree, "/sys/class/infiniband_verbs/uverbs0",
		 "../../devices/pci0000:00/" KRN_SYSFS_PCI "/infiniband_verbs/uverbs0");
	put_link(tree, "/sys/class/infiniband/" KRN_SYSFS_DEV,
		 "../../devices/pci0000:00/" KRN_SYSFS_PCI "/infiniband/" KRN_SYSFS_DEV);
	put_file(tree, UV_DIR "/dev", "231:192");
	put_file(tree, UV_DIR "/ibdev", KRN_SYSFS_DEV);
	put_file(tree, UV_DIR "/abi_version", "1");
	put_link(tree, UV_DIR "/device", "../../../" KRN_SYSFS_PCI);
	put_link(tree, IB_DIR "/device", "../../../" KRN_SYSFS_PCI);
	put_file(tree, IB_DIR "/node_type", "1: CA");
	put_guid(tree, IB_DIR "/node_guid", node->guid);
	put_guid(tree, IB_DIR "/sys_image_guid", node->guid);
	put_file(tree, IB_DIR "/fw_ver", "20.31.1014");
	put_file(tree, IB_DIR "/hca_type", "MT4123");
	put_file(tree, IB_DIR "/hw_rev", "0");
	put_file(tree, IB_DIR "/board_id", "MT_0000000223");
	put_file(tree, IB_DIR "/node_desc", "model of a ConnectX, node %u", index);
	put_file(tree, "/sys/class/misc/rdma_cm/abi_version", "4");
	put_file(tree, "/sys/class/misc/rdma_cm/dev", "10:59");
	put_file(tree, "/dev/infiniband/uverbs0", "%s", "");
	put_file(tree, "/dev/infiniband/rdma_cm", "%s", "");
}

static void put_gid(struct tree *tree, const struct mdl_node *node, uint32_t index, bool roce)
{
	const uint8_t *gid = node->gid[index];
	char name[PATH_MAX], text[48];
	int used = 0;

	for (int i = 0; i < 16; i += 2)
		used += snprintf(text + used, sizeof(text) - (size_t)used,
				 i ? ":%02x%02x" : "%02x%02x", gid[i], gid[i + 1]);
	snprintf(name, sizeof(name), PORT_DIR "/gids/%u", index);
	put_file(tree, name, "%s", text);
	if (!roce)
		return;
	snprintf(name, sizeof(name), PORT_DIR "/gid_attrs/types/%u", index);
	put_file(tree, name, "%s", node->gid_type[index] == 2 ? "RoCE v2" : "IB/RoCE v1");
}

static void put_port(struct tree *tree, const struct mdl_node *node, bool roce)
{
	put_file(tree, PORT_DIR "/state", "4: ACTIVE");
	put_file(tree, PORT_DIR "/phys_state", "5: LinkUp");
	put_file(tree, PORT_DIR "/rate", "100 Gb/sec (4X EDR)");
	put_file(tree, PORT_DIR "/link_layer", "%s", roce ? "Ethernet" : "InfiniBand");
	put_file(tree, PORT_DIR "/lid", "0x%x", node->lid);
	put_file(tree, PORT_DIR "/lid_mask_count", "0");
	put_file(tree, PORT_DIR "/sm_lid", "0x%x", roce ? 0 : 1);
	put_file(tree, PORT_DIR "/sm_sl", "0");
	put_file(tree, PORT_DIR "/cap_mask", "0x%08x", roce ? 0x04010000 : 0x2651e848);
	put_file(tree, PORT_DIR "/pkeys/0", "0xffff");
	for (uint32_t i = 0; i < GID_FILES; i++)
		put_gid(tree, node, i, roce);
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
	struct mdl_node node = { 0 };
	struct tree tree = { .err = 0 };
	char base[100], suffix[64];

	if (mdl_segment_path(base, sizeof(base), ".sys") < 0)
		return -ENAMETOOLONG;
	snprintf(suffix, sizeof(suffix), "/%s-%u", roce ? "roce" : "ib", config->node);
	if (snprintf(root, size, "%s%s", base, suffix) >= (int)size)
		return -ENAMETOOLONG;
	keep_error(&tree, make_base(base));
	if (tree.err || MDL_RAW4(faccessat, AT_FDCWD, root, F_OK, 0) == 0)
		return tree.err;

	snprintf(tree.root, sizeof(tree.root), "%s/tmp-%ld", base, MDL_RAW0(gettid));
	keep_error(&tree, MDL_RAW2(mkdir, tree.root, 0755));
	mdl_node_fill(&node, config->node, (enum mdl_link)config->link);
	put_pci(&tree);
	put_verbs(&tree, &node, config->node);
	put_port(&tree, &node, roce);
	/*
	 * If another process was faster, its tree is used. This one stays until the fabric is
	 * reset.
	 */
	if (!tree.err)
		MDL_RAW2(rename, tree.root, root);
	return tree.err;
}
