# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# Recipe for Spack. From a checkout or an unpacked release:
#
#   mkdir -p REPO/packages/copyrpc && cp contrib/spack/package.py REPO/packages/copyrpc
#   echo "repo: {namespace: local}" > REPO/repo.yaml && spack repo add REPO
#   spack dev-build copyrpc@0.2.0

import os

from spack.package import *


class Copyrpc(AutotoolsPackage):
    """Libfabric provider that makes small messages cheap: between processes of one host through
    shared memory, between hosts over RDMA adapters or UDP."""

    homepage = "https://copyrpc.invalid/"

    license("BSD-2-Clause OR GPL-2.0-only")

    version("0.2.0")

    variant("probes", default=False, description="Static probes of single operations, too")

    depends_on("c", type="build")
    depends_on("autoconf@2.71:", type="build")
    depends_on("automake@1.16:", type="build")
    depends_on("libtool", type="build")
    depends_on("m4", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("libfabric@1.17:")
    depends_on("libsodium")
    depends_on("rdma-core@44:")
    depends_on("python@3:", type="run")

    def autoreconf(self, spec, prefix):
        if not os.path.exists("configure"):
            Executable("./autogen.sh")()

    def configure_args(self):
        args = ["--without-openmpi-pml"]
        args += self.enable_or_disable("probes")
        return args

    def setup_run_environment(self, env):
        env.set("FI_PROVIDER_PATH", join_path(self.prefix.lib, "libfabric"))
