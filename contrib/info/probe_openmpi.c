/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/*
 * The Open MPI of PATH: asks its ompi_info (info_ompi.h), and the loader which libfabric its
 * components use.
 */
#include <stdlib.h>
#include <string.h>

#include <rdma/fabric.h>

#include "info/info.h"
#include "info/info_child.h"
#include "info/info_ompi.h"
#include "info/info_probes.h"
#include "info/info_sys.h"

#define TOPIC "openmpi"

/* An mpirun without ompi_info: another MPI, or half an installation. */
static void openmpi_unknown(struct info *info)
{
	const char *const argv[] = { "mpirun", "--version", NULL };
	struct info_child child;

	if (info_child_exec(argv, INFO_CHILD_SECONDS, &child) || child.status == 127)
		info_add(&info->report, INFO_NOTE, TOPIC, "openmpi-none",
			 "no mpirun and no ompi_info in PATH: Open MPI was not looked at");
	else if (strstr(child.out, "Open MPI"))
		info_add(&info->report, INFO_NOTE, TOPIC, "openmpi-no-info",
			 "%.*s: its ompi_info is not in PATH or fails, so its settings are not "
			 "known",
			 (int)strcspn(child.out, "\n"), child.out);
	else
		info_add(&info->report, INFO_NOTE, TOPIC, "openmpi-other-mpi",
			 "mpirun belongs to another MPI (%.*s), whose settings are not looked "
			 "at; over libfabric it needs FI_PROVIDER and FI_PROVIDER_PATH",
			 (int)strcspn(child.out, "\n"), child.out);
	info_child_fini(&child);
}

/* Returns the libfabric that the loader finds for `object`, or NULL. */
static char *openmpi_libfabric_of(const char *object)
{
	const char *const argv[] = { "ldd", object, NULL };
	struct info_child child;
	char *path = NULL, *at;

	if (!info_child_exec(argv, INFO_CHILD_SECONDS, &child)) {
		at = strstr(child.out, "libfabric.so.1 => /");
		if (at) {
			at = strchr(at, '/');
			at[strcspn(at, " \n")] = '\0';
			path = realpath(at, NULL);
		}
	}
	info_child_fini(&child);
	return path;
}

/* Compares the libfabric of mtl/ofi with the one of this program. */
static void openmpi_check_libfabric(struct info *info, const struct info_ompi *ompi)
{
	char *object = info_print("%s/mca_mtl_ofi.so", ompi->pkglibdir);
	char *theirs = openmpi_libfabric_of(object);
	char *ours = info_sys_object((const void *)(uintptr_t)fi_version);

	if (theirs && ours && strcmp(theirs, ours) != 0) {
		info_add(&info->report, INFO_SLOW, TOPIC, "openmpi-other-libfabric",
			 "Open MPI loads another libfabric (%s) than programs of this shell "
			 "(%s): what is found below about the one need not be so for the other",
			 theirs, ours);
		info_mend(&info->report,
			  "export LD_LIBRARY_PATH='%s'\"${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}\"",
			  info_sys_dirname(theirs));
	}
	free(object);
	free(theirs);
	free(ours);
}

/* Records where copyrpc's component looks for the provider if no variable says so. */
static void openmpi_keep_path(struct info *info, const struct info_ompi *ompi)
{
	if (ompi->has_pml_copyrpc && ompi->provider_path.value[0] &&
	    info_mca_names(ompi->pml.value, "copyrpc"))
		info->mpi_provider = info_print("%s", ompi->provider_path.value);
}

void info_probe_openmpi(struct info *info)
{
	const char *const argv[] = { "ompi_info", "--all", "--parsable", NULL };
	struct info_child child;
	struct info_ompi ompi;
	int ret = info_child_exec(argv, INFO_CHILD_SECONDS, &child);

	if (ret || child.status || !info_ompi_parse(child.out, &ompi)) {
		openmpi_unknown(info);
	} else {
		info_ompi_judge(&ompi, getenv("FI_PROVIDER"), &info->report);
		openmpi_check_libfabric(info, &ompi);
		openmpi_keep_path(info, &ompi);
	}
	info_child_fini(&child);
}
