/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Open MPI's selection: see info_ompi.h. */
#include "info/info_ompi.h"

#include <stdio.h>
#include <string.h>

#include "info/info.h"

#define INFO_OMPI_TOPIC  "openmpi"
#define INFO_OMPI_SELECT "eval \"$(copyrpc_env)\""

/* Copies the rest of a line, without quotes. */
static void info_ompi_copy(char *to, size_t len, const char *text)
{
	size_t n = strcspn(text, "\n");

	if (n >= 2 && text[0] == '"' && text[n - 1] == '"') {
		text++;
		n -= 2;
	}
	snprintf(to, len, "%.*s", (int)n, text);
}

/* Copies what follows `key` at the beginning of the line. Returns whether the line begins so. */
static bool info_ompi_field(const char *line, const char *key, char *to, size_t len)
{
	size_t n = strlen(key);

	if (strncmp(line, key, n) != 0)
		return false;
	info_ompi_copy(to, len, line + n);
	return true;
}

static bool info_ompi_is_component(const char *line, const char *type, const char *name)
{
	char key[64];
	int len = snprintf(key, sizeof(key), "mca:%s:%s:version:", type, name);

	return !strncmp(line, key, (size_t)len);
}

/* Reads a parameter's value or source, if the line has one of them. */
static void info_ompi_param(const char *line, const char *prefix, struct info_mca *mca)
{
	char key[96];

	snprintf(key, sizeof(key), "%s:value:", prefix);
	info_ompi_field(line, key, mca->value, sizeof(mca->value));
	snprintf(key, sizeof(key), "%s:source:", prefix);
	info_ompi_field(line, key, mca->source, sizeof(mca->source));
}

static void info_ompi_line(const char *line, struct info_ompi *ompi)
{
	info_ompi_field(line, "ompi:version:full:", ompi->version, sizeof(ompi->version));
	info_ompi_field(line, "path:pkglibdir:", ompi->pkglibdir, sizeof(ompi->pkglibdir));
	ompi->has_pml_copyrpc |= info_ompi_is_component(line, "pml", "copyrpc");
	ompi->has_pml_cm |= info_ompi_is_component(line, "pml", "cm");
	ompi->has_mtl_ofi |= info_ompi_is_component(line, "mtl", "ofi");
	info_ompi_param(line, "mca:pml:base:param:pml", &ompi->pml);
	info_ompi_param(line, "mca:mtl:base:param:mtl", &ompi->mtl);
	info_ompi_param(line, "mca:mtl:ofi:param:mtl_ofi_provider_include", &ompi->include);
	info_ompi_param(line, "mca:pml:copyrpc:param:pml_copyrpc_provider_path",
			&ompi->provider_path);
}

bool info_ompi_parse(const char *text, struct info_ompi *ompi)
{
	memset(ompi, 0, sizeof(*ompi));
	while (text) {
		info_ompi_line(text, ompi);
		text = strchr(text, '\n');
		text = text ? text + 1 : NULL;
	}
	return ompi->version[0];
}

static bool info_mca_lists(const char *list, const char *name)
{
	size_t want = strlen(name);

	while (list) {
		size_t len = strcspn(list, ",");

		if (len == want && !memcmp(list, name, len))
			return true;
		list = list[len] ? list + len + 1 : NULL;
	}
	return false;
}

bool info_mca_permits(const char *value, const char *name)
{
	if (value[0] == '^')
		return !info_mca_lists(value + 1, name);
	return !value[0] || info_mca_lists(value, name);
}

bool info_mca_names(const char *value, const char *name)
{
	return value[0] != '^' && info_mca_lists(value, name);
}

/* pml names the component. */
static void info_ompi_judge_copyrpc(const struct info_ompi *o, struct info_report *r)
{
	if (!o->has_pml_copyrpc) {
		info_add(r, INFO_BROKEN, INFO_OMPI_TOPIC, "openmpi-no-component",
			 "pml=%s (%s), but Open MPI %s finds no component mca_pml_copyrpc.so: "
			 "jobs end in MPI_Init",
			 o->pml.value, o->pml.source, o->version);
		info_mend(r, INFO_OMPI_SELECT " (or copyrpc_env --mtl, without the component)");
	} else if (strchr(o->pml.value, ',')) {
		info_add(r, INFO_SLOW, INFO_OMPI_TOPIC, "openmpi-fall-back",
			 "pml=%s (%s) has other candidates, to which jobs fall back in silence",
			 o->pml.value, o->pml.source);
		info_mend(r, "export OMPI_MCA_pml=copyrpc");
	} else {
		info_add(r, INFO_GOOD, INFO_OMPI_TOPIC, "openmpi-selected",
			 "Open MPI %s uses copyrpc's component, pml=copyrpc (%s); no other is a "
			 "candidate, so nothing falls back",
			 o->version, o->pml.source);
	}
}

/* pml names no component, or only some to be left out. */
static void info_ompi_judge_open(const struct info_ompi *o, struct info_report *r)
{
	const char *pml = o->pml.value[0] ? o->pml.value : "(none)";

	if (o->has_pml_copyrpc && info_mca_permits(o->pml.value, "copyrpc")) {
		info_add(r, INFO_SLOW, INFO_OMPI_TOPIC, "openmpi-fall-back",
			 "pml=%s (%s): copyrpc's component is the first candidate, but jobs fall "
			 "back to another transport in silence if it fails",
			 pml, o->pml.source);
		info_mend(r, "export OMPI_MCA_pml=copyrpc");
		return;
	}
	info_add(r, INFO_SLOW, INFO_OMPI_TOPIC, "openmpi-not-selected",
		 "pml=%s (%s): nothing makes Open MPI %s use copyrpc, and jobs take another "
		 "transport in silence",
		 pml, o->pml.source, o->version);
	info_mend(r, INFO_OMPI_SELECT " (one shell), or copyrpc_openmpi install (this user)");
}

/* pml names others only. */
static void info_ompi_judge_other(const struct info_ompi *o, struct info_report *r)
{
	info_add(r, INFO_SLOW, INFO_OMPI_TOPIC, "openmpi-other-pml",
		 "pml=%s (%s) makes Open MPI %s use another transport than copyrpc", o->pml.value,
		 o->pml.source, o->version);
	info_mend(r, !strcmp(o->pml.source, "environment") ? "unset OMPI_MCA_pml; " INFO_OMPI_SELECT
							   : INFO_OMPI_SELECT
			     ", or remove that line");
}

/* Judges the providers that mtl/ofi may take. */
static void info_ompi_judge_include(const struct info_ompi *o, const char *fi_provider,
				    struct info_report *r)
{
	bool filtered = fi_provider && info_mca_names(fi_provider, "copyrpc");

	if (info_mca_names(o->include.value, "copyrpc") || (!o->include.value[0] && filtered)) {
		info_add(r, INFO_GOOD, INFO_OMPI_TOPIC, "openmpi-selected",
			 "Open MPI %s matches through libfabric, pml=cm (%s) and mtl=%s (%s), "
			 "and takes the provider copyrpc",
			 o->version, o->pml.source, o->mtl.value[0] ? o->mtl.value : "any",
			 o->mtl.source);
	} else if (o->include.value[0]) {
		info_add(r, INFO_BROKEN, INFO_OMPI_TOPIC, "openmpi-include",
			 "mtl_ofi_provider_include=%s (%s) leaves copyrpc out", o->include.value,
			 o->include.source);
		info_mend(r, "export OMPI_MCA_mtl_ofi_provider_include=copyrpc");
	} else {
		info_add(r, INFO_SLOW, INFO_OMPI_TOPIC, "openmpi-any-provider",
			 "nothing limits mtl/ofi to copyrpc: it takes the provider that "
			 "libfabric lists first");
		info_mend(r, "export OMPI_MCA_mtl_ofi_provider_include=copyrpc");
	}
}

/* pml names cm. */
static void info_ompi_judge_cm(const struct info_ompi *o, const char *fi_provider,
			       struct info_report *r)
{
	bool debian = strstr(o->mtl.source, "/etc/openmpi");

	if (!o->has_mtl_ofi || !o->has_pml_cm) {
		info_add(r, INFO_BROKEN, INFO_OMPI_TOPIC, "openmpi-no-mtl",
			 "pml=cm (%s), but this Open MPI %s was built without mtl/ofi",
			 o->pml.source, o->version);
		info_mend(r, "use copyrpc_env --pml, or build Open MPI with --with-libfabric");
	} else if (!info_mca_permits(o->mtl.value, "ofi")) {
		info_add(r, INFO_BROKEN, INFO_OMPI_TOPIC, "openmpi-mtl-off",
			 "mtl=%s (%s%s) switches mtl/ofi off, without which pml=cm (%s) cannot "
			 "use libfabric: jobs end in MPI_Init",
			 o->mtl.value, debian ? "Debian's default: " : "", o->mtl.source,
			 o->pml.source);
		info_mend(r, "export OMPI_MCA_mtl=ofi");
	} else {
		info_ompi_judge_include(o, fi_provider, r);
	}
}

void info_ompi_judge(const struct info_ompi *ompi, const char *fi_provider,
		     struct info_report *report)
{
	const char *pml = ompi->pml.value;

	if (!pml[0] || pml[0] == '^')
		info_ompi_judge_open(ompi, report);
	else if (info_mca_names(pml, "copyrpc"))
		info_ompi_judge_copyrpc(ompi, report);
	else if (info_mca_names(pml, "cm"))
		info_ompi_judge_cm(ompi, fi_provider, report);
	else
		info_ompi_judge_other(ompi, report);
}
