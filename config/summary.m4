# SPDX-License-Identifier: BSD-2-Clause OR GPL-2.0-only
#
# COPYRPC_SUMMARY: what was found, on one screen, at the end of configure.

AC_DEFUN([COPYRPC_SUMMARY], [
	AC_MSG_NOTICE([
copyrpc $PACKAGE_VERSION
  compiler     $CC $CFLAGS $SANITIZE_CFLAGS
  libfabric    $($PKG_CONFIG --modversion libfabric)
  libsodium    $($PKG_CONFIG --modversion libsodium)
  libibverbs   $($PKG_CONFIG --modversion libibverbs)
  ncurses      $have_ncurses (live view of copyrpc_top)
  unit tests   $have_criterion (Criterion)
  MPI tests    $have_mpi
  Open MPI PML $have_openmpi_pml (component for Open MPI ${openmpi_series:-4.1 and 5.0})
  probes       $have_sdt (USDT)
  UCX peer     $have_ucx
  CK peer      $have_ck
  cache lines  $have_zydis (insn_count -l, with Zydis)
  installs to  $prefix
])
])
