/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Maps paths of the modelled device, below /sys and /dev, into the model's tree, and back. */
#include "model/kernel/krn_path.h"
#include "model/kernel/krn_sysfs.h"
#include "model/fabric/mdl_segment.h"

#include <pthread.h>
#include <stdio.h>
#include <string.h>

/*
 * A path belongs to the model if it is one of these or below it. The tree has no kallsyms, 5 MB
 * that libfabric's verbs provider reads twice in each process.
 */
static const char *const prefixes[] = {
	"/sys/class/infiniband",   "/sys/class/infiniband_verbs",
	"/sys/class/misc/rdma_cm", "/sys/class/infiniband_cm",
	"/dev/infiniband",         "/proc/kallsyms",
};

static char tree[128];
static size_t tree_len;
static pthread_once_t tree_once = PTHREAD_ONCE_INIT;

static void tree_make(void)
{
	int err = krn_sysfs_make(tree, sizeof(tree));

	if (!err)
		tree_len = strlen(tree);
	else
		mdl_say("cannot make the device's files in /dev/shm (%s), so no device will be "
			"found: it has to be a tmpfs with room, in which this user may write",
			strerror(-err));
}

static bool below(const char *path, const char *prefix)
{
	size_t len = strlen(prefix);

	return !strncmp(path, prefix, len) && (path[len] == 0 || path[len] == '/');
}

/* Returns true if the path is that of a device on PCI, or below it. */
static bool is_on_pci(const char *path)
{
	static const char *const dirs[] = { "/sys/devices/pci0000:00/", "/sys/bus/pci/devices/" };

	for (size_t i = 0; i < sizeof(dirs) / sizeof(dirs[0]); i++) {
		size_t len = strlen(dirs[i]);

		if (strncmp(path, dirs[i], len))
			continue;
		for (uint32_t device = 0; device < mdl_config_get()->devices; device++)
			if (below(path + len, krn_sysfs_pci[device]))
				return true;
	}
	return false;
}

static bool is_ours(const char *path)
{
	uint32_t device;

	for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
		if (below(path, prefixes[i]))
			return true;
	return is_on_pci(path) || krn_path_device(path, &device) != KRN_DEV_NONE;
}

enum krn_dev krn_path_device(const char *path, uint32_t *device)
{
	char uverbs[32], number[32];

	*device = 0;
	if (!path || strncmp(path, "/dev/", 5))
		return KRN_DEV_NONE;
	for (; *device < mdl_config_get()->devices; ++*device) {
		snprintf(uverbs, sizeof(uverbs), "/dev/infiniband/uverbs%u", *device);
		snprintf(number, sizeof(number), "/dev/char/%d:%u", KRN_DEV_MAJOR,
			 KRN_DEV_MINOR + *device);
		if (!strcmp(path, uverbs) || !strcmp(path, number))
			return KRN_DEV_IS_UVERBS;
	}
	return strcmp(path, KRN_DEV_CM) ? KRN_DEV_NONE : KRN_DEV_IS_CM;
}

/* Returns whether a path begins as one of the model's may, or with two slashes. */
static bool may_be_ours(const char *path)
{
	return path && path[0] == '/' && path[1] && strchr("sdp/", path[1]);
}

/* Normalises paths such as "/sys//class/x". */
static void squeeze(const char *from, char *to, size_t size)
{
	size_t len = 0;

	for (; *from && len < size - 1; from++)
		if (*from != '/' || !len || to[len - 1] != '/')
			to[len++] = *from;
	to[len] = 0;
}

const char *krn_path_map(const char *path, char buf[PATH_MAX])
{
	char plain[PATH_MAX];

	if (!may_be_ours(path))
		return path;
	squeeze(path, plain, sizeof(plain));
	if (!is_ours(plain))
		return path;
	pthread_once(&tree_once, tree_make);
	if (!tree_len || snprintf(buf, PATH_MAX, "%s%s", tree, plain) >= PATH_MAX)
		return path;
	return buf;
}

void krn_path_unmap(char *path)
{
	if (tree_len && !strncmp(path, tree, tree_len) && path[tree_len] == '/')
		memmove(path, path + tree_len, strlen(path + tree_len) + 1);
}
