/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * libfabric of this shell, other libfabrics of the machine, the file of the provider, and the
 * variables that hide it.
 *
 * libfabric's own directory of providers is in the help text of its parameter FI_PROVIDER_PATH.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rdma/fabric.h>
#include <rdma/fi_errno.h>

#include "info/info.h"
#include "info/info_child.h"
#include "info/info_filter.h"
#include "info/info_probes.h"
#include "info/info_sys.h"

#define TOPIC    "libfabric"
#define PROVIDER "libcopyrpc-fi.so"
#define LIBRARY  "libfabric.so.1"
#define API      FI_VERSION(1, 17)

/* ---- libfabric ---- */

/* Adds the libfabric in `dir` to *others unless it is `own` or known. */
static void fabric_look(const char *dir, const char *own, char **others)
{
	char *path = info_print("%s/" LIBRARY, dir), *real = realpath(path, NULL), *all;

	if (real && strcmp(real, own) != 0 && !(*others && strstr(*others, real))) {
		all = info_print("%s%s%s", *others ? *others : "", *others ? ", " : "", real);
		free(*others);
		*others = all;
	}
	free(path);
	free(real);
}

static void fabric_look_all(const char *list, const char *own, char **others)
{
	while (list) {
		size_t len = strcspn(list, ":");
		char *dir = info_print("%.*s", (int)len, list);

		if (len)
			fabric_look(dir, own, others);
		free(dir);
		list = list[len] ? list + len + 1 : NULL;
	}
}

/* Reports libfabrics that a program with another search path would load. */
static void fabric_others(struct info_report *report, const char *own)
{
	char *libc = info_sys_object((const void *)(uintptr_t)getenv);
	char *others = NULL;

	fabric_look_all(getenv("LD_LIBRARY_PATH"), own, &others);
	fabric_look_all("/usr/local/lib:/usr/lib:/usr/lib64:/opt/libfabric/lib:/opt/amazon/efa/lib:"
			"/opt/cray/libfabric/lib64",
			own, &others);
	if (libc)
		fabric_look(info_sys_dirname(libc), own, &others);
	if (others) {
		info_add(report, INFO_NOTE, TOPIC, "libfabric-several",
			 "programs that were linked with another search path load another "
			 "libfabric: %s; this report is about %s",
			 others, own);
		info_mend(report, "ldd PROGRAM | grep libfabric (LD_LIBRARY_PATH selects one)");
	}
	free(others);
	free(libc);
}

static void fabric_version(struct info_report *report, const char *own)
{
	uint32_t version = fi_version();

	if (FI_VERSION_LT(version, API)) {
		info_add(report, INFO_BROKEN, TOPIC, "libfabric-old",
			 "libfabric %u.%u (%s) is older than 1.17, which copyrpc needs",
			 FI_MAJOR(version), FI_MINOR(version), own);
		info_mend(report, "export LD_LIBRARY_PATH=DIRECTORY-OF-A-NEWER-LIBFABRIC"
				  "\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"");
	} else {
		info_add(report, INFO_GOOD, TOPIC, "libfabric", "libfabric %u.%u (%s)",
			 FI_MAJOR(version), FI_MINOR(version), own);
	}
}

/* ---- the provider's file ---- */

/* Writes libfabric's own directory of providers. It is read in a child, whose log is captured. */
static int fabric_default_dir(void *arg, int out)
{
	static const char key[] = "(default: ";
	struct fi_param *params;
	int cnt = 0;

	(void)arg;
	if (fi_getparams(&params, &cnt))
		return 1;
	for (int i = 0; i < cnt; i++) {
		const char *at = strcmp(params[i].name, "FI_PROVIDER_PATH")
					 ? NULL
					 : strstr(params[i].help_string, key);

		if (at)
			dprintf(out, "%.*s", (int)strcspn(at + strlen(key), ")"), at + strlen(key));
	}
	return 0;
}

/* Returns the directories in which libfabric looks for providers. */
static char *fabric_dirs(bool *is_default)
{
	const char *path = getenv("FI_PROVIDER_PATH");
	struct info_child child;
	char *dirs;

	*is_default = !path || !*path;
	if (!*is_default)
		return info_print("%s", path + (*path == '@'));
	info_child_run(fabric_default_dir, NULL, INFO_CHILD_SECONDS, &child);
	dirs = info_print("%s", child.out ? child.out : "");
	info_child_fini(&child);
	return dirs;
}

/* Returns the provider that was installed with this program, relative to it, or NULL. */
static char *fabric_installed(void)
{
	const char *bin = INFO_BINDIR "/", *prov = INFO_PROVDIR "/";
	char self[4096], *path, *real;
	size_t same = 0, i;
	ssize_t len = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (len < 0)
		return NULL;
	self[len] = '\0';
	for (i = 0; bin[i] && bin[i] == prov[i]; i++)
		if (bin[i] == '/')
			same = i + 1;
	path = info_print("%s/", info_sys_dirname(self));
	for (i = same; bin[i]; i++)
		if (bin[i] == '/') {
			char *up = info_print("%s../", path);

			free(path);
			path = up;
		}
	real = info_print("%s%s" PROVIDER, path, prov + same);
	free(path);
	path = realpath(real, NULL);
	free(real);
	return path;
}

static void fabric_missing(struct info *info, const char *dirs, bool is_default)
{
	char *installed = fabric_installed();
	char *mpi = NULL;
	bool by_mpi = info->mpi_provider && info_sys_find(info->mpi_provider, PROVIDER, &mpi);

	info->provider_hidden = true;
	info_add(&info->report, by_mpi ? INFO_SLOW : INFO_BROKEN, TOPIC,
		 is_default ? "provider-missing" : "provider-path", "no " PROVIDER " in %s (%s)%s",
		 dirs,
		 is_default ? "libfabric's own directory; FI_PROVIDER_PATH is not set"
			    : "FI_PROVIDER_PATH",
		 by_mpi ? ": only Open MPI finds it (pml_copyrpc_provider_path), other programs do "
			  "not"
			: ": libfabric cannot load copyrpc");
	if (installed)
		info_mend(&info->report,
			  "export FI_PROVIDER_PATH='%s'\"${FI_PROVIDER_PATH:+:$FI_PROVIDER_PATH}\"",
			  info_sys_dirname(installed));
	else
		info_mend(&info->report, "eval \"$(copyrpc_env)\"");
	free(installed);
	free(mpi);
}

/* Loads the file as libfabric does, and writes the loader's complaint. */
static int fabric_load(void *arg, int out)
{
	if (dlopen(arg, RTLD_NOW | RTLD_LOCAL))
		return 0;
	dprintf(out, "%s", dlerror());
	return 1;
}

static void fabric_found(struct info *info, char *path, bool is_default)
{
	struct info_report *report = &info->report;
	struct info_child child;

	if (info_child_run(fabric_load, path, INFO_CHILD_SECONDS, &child) || !child.status) {
		info_add(report, INFO_GOOD, TOPIC, "provider-found", "provider %s (%s)", path,
			 is_default ? "libfabric's own directory" : "FI_PROVIDER_PATH");
	} else {
		info->provider_hidden = true;
		info_add(report, INFO_BROKEN, TOPIC, "provider-unloadable",
			 "%s cannot be loaded: %s", path,
			 child.len ? child.out : "the loader crashed");
		info_mend(report, "ldd %s (shows what is missing)", path);
	}
	info_child_fini(&child);
}

/* ---- variables ---- */

static void fabric_filter(struct info *info)
{
	const char *value = getenv("FI_PROVIDER");

	if (info_filter_permits(value))
		return;
	info->provider_hidden = true;
	info_add(&info->report, INFO_BROKEN, TOPIC, "provider-hidden",
		 "FI_PROVIDER=%s makes libfabric leave copyrpc out", value);
	info_mend(&info->report, "export FI_PROVIDER=copyrpc");
}

void info_probe_fabric(struct info *info)
{
	char *own = info_sys_object((const void *)(uintptr_t)fi_version);
	char *path = NULL, *dirs;
	bool is_default;

	fabric_version(&info->report, own ? own : "linked statically");
	if (own)
		fabric_others(&info->report, own);
	free(own);
	dirs = fabric_dirs(&is_default);
	if (info_sys_find(dirs, PROVIDER, &path))
		fabric_found(info, path, is_default);
	else if (*dirs)
		fabric_missing(info, dirs, is_default);
	fabric_filter(info);
	free(path);
	free(dirs);
}
