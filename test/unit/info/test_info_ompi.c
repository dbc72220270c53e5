/* SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only */
/* Output of ompi_info, and what it means. */
#include "info/info_ompi.h"

#include "unit/info/info_tree.h"

#define FILE_SOURCE "file (/etc/openmpi/openmpi-mca-params.conf:67)"

static const char output[] = "ompi:version:full:4.1.4\n"
			     "path:pkglibdir:/usr/lib/openmpi3\n"
			     "mca:mtl:ofi:version:\"component:4.1.4\"\n"
			     "mca:pml:cm:version:\"component:4.1.4\"\n"
			     "mca:pml:copyrpcx:version:\"component:4.1.4\"\n"
			     "mca:mtl:base:param:mtl:value:^ofi\n"
			     "mca:mtl:base:param:mtl:source:" FILE_SOURCE "\n"
			     "mca:mtl:base:param:mtl_base_verbose:value:error\n"
			     "mca:pml:base:param:pml:value:\"cm,ob1\"\n"
			     "mca:pml:base:param:pml:source:environment\n"
			     "mca:mtl:ofi:param:mtl_ofi_provider_include:value:copyrpc\n";

Test(info_ompi, the_output_of_ompi_info_is_parsed)
{
	struct info_ompi ompi;

	cr_assert(info_ompi_parse(output, &ompi));
	cr_expect_str_eq(ompi.version, "4.1.4");
	cr_expect_str_eq(ompi.pkglibdir, "/usr/lib/openmpi3");
	cr_expect(ompi.has_mtl_ofi && ompi.has_pml_cm);
	cr_expect_not(ompi.has_pml_copyrpc);
	cr_expect_str_eq(ompi.mtl.value, "^ofi");
	cr_expect_str_eq(ompi.mtl.source, FILE_SOURCE);
	cr_expect_str_eq(ompi.pml.value, "cm,ob1");
	cr_expect_str_eq(ompi.include.value, "copyrpc");
	cr_expect_str_eq(ompi.provider_path.value, "");
	cr_expect_not(info_ompi_parse("", &ompi));
	cr_expect_not(info_ompi_parse("HYDRA build details:\n", &ompi));
}

Test(info_ompi, lists_include_or_exclude)
{
	cr_expect(info_mca_permits("", "ofi"));
	cr_expect(info_mca_permits("psm,ofi", "ofi"));
	cr_expect(info_mca_permits("^psm", "ofi"));
	cr_expect_not(info_mca_permits("^psm,ofi", "ofi"));
	cr_expect_not(info_mca_permits("psm,ofix", "ofi"));
	cr_expect(info_mca_names("a,ofi", "ofi"));
	cr_expect_not(info_mca_names("", "ofi"));
	cr_expect_not(info_mca_names("^psm", "ofi"));
}

/** A set-up and what is found. Components that are missing: letters of "pcm". */
struct ompi_case {
	const char *pml, *mtl, *include, *provider, *missing;
	enum info_verdict verdict;
	const char *id, *mend;
};

static void ompi_check(const struct ompi_case *it)
{
	struct info_report report = { 0 };
	struct info_ompi ompi = { .version = "4.1.4",
				  .has_pml_copyrpc = !strchr(it->missing, 'p'),
				  .has_pml_cm = !strchr(it->missing, 'c'),
				  .has_mtl_ofi = !strchr(it->missing, 'm') };

	snprintf(ompi.pml.value, sizeof(ompi.pml.value), "%s", it->pml);
	snprintf(ompi.mtl.value, sizeof(ompi.mtl.value), "%s", it->mtl);
	snprintf(ompi.include.value, sizeof(ompi.include.value), "%s", it->include);
	snprintf(ompi.mtl.source, sizeof(ompi.mtl.source), "%s", FILE_SOURCE);
	info_ompi_judge(&ompi, it->provider, &report);
	cr_expect_eq(report.cnt, 1);
	info_expect(&report, it->verdict, it->id, it->mend);
	info_report_fini(&report);
}

Test(info_ompi, each_selection_has_its_verdict)
{
	static const struct ompi_case cases[] = {
		{ "copyrpc", "^ofi", "", NULL, "", INFO_GOOD, "openmpi-selected", NULL },
		{ "copyrpc", "", "", NULL, "p", INFO_BROKEN, "openmpi-no-component",
		  "copyrpc_env" },
		{ "copyrpc,ob1", "", "", NULL, "", INFO_SLOW, "openmpi-fall-back", "pml=copyrpc" },
		{ "^ucx", "^ofi", "", NULL, "", INFO_SLOW, "openmpi-fall-back", "pml=copyrpc" },
		{ "", "", "", NULL, "p", INFO_SLOW, "openmpi-not-selected", "copyrpc_env" },
		{ "^copyrpc", "", "", NULL, "", INFO_SLOW, "openmpi-not-selected", "copyrpc_env" },
		{ "ob1", "ofi", "", NULL, "", INFO_SLOW, "openmpi-other-pml", "copyrpc_env" },
		{ "cm", "^ofi", "copyrpc", NULL, "", INFO_BROKEN, "openmpi-mtl-off", "mtl=ofi" },
		{ "cm", "psm", "copyrpc", NULL, "", INFO_BROKEN, "openmpi-mtl-off", "mtl=ofi" },
		{ "cm", "ofi", "copyrpc", NULL, "m", INFO_BROKEN, "openmpi-no-mtl", "libfabric" },
		{ "cm", "ofi", "copyrpc", NULL, "", INFO_GOOD, "openmpi-selected", NULL },
		{ "cm", "", "", "copyrpc", "", INFO_GOOD, "openmpi-selected", NULL },
		{ "cm", "ofi", "", NULL, "", INFO_SLOW, "openmpi-any-provider", "include=copyrpc" },
		{ "cm", "ofi", "", "tcp", "", INFO_SLOW, "openmpi-any-provider",
		  "include=copyrpc" },
		{ "cm", "ofi", "tcp", "copyrpc", "", INFO_BROKEN, "openmpi-include",
		  "include=copyrpc" },
	};

	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		ompi_check(&cases[i]);
}

Test(info_ompi, the_file_that_switches_mtl_ofi_off_is_named)
{
	struct info_report report = { 0 };
	struct info_ompi ompi = { .has_pml_cm = true, .has_mtl_ofi = true };

	strcpy(ompi.pml.value, "cm");
	strcpy(ompi.mtl.value, "^ofi");
	strcpy(ompi.mtl.source, FILE_SOURCE);
	info_ompi_judge(&ompi, NULL, &report);
	cr_expect(strstr(report.list[0].text, "Debian's default: " FILE_SOURCE));
	info_report_fini(&report);
}
