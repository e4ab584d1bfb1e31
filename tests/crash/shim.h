/* What the campaign and the shim inside the server share: a file that both map. The shim (shim.c, loaded into orbitd before its
 * libraries) stands between the log's file and the kernel: it counts what is written and synced, fails what it is told to
 * fail, and keeps what was written but not synced, so that it can be taken back as a power cut takes it back. */
#ifndef ORBIT_TESTS_CRASH_SHIM_H
#define ORBIT_TESTS_CRASH_SHIM_H

#include <stdatomic.h>
#include <stdint.h>

/* In the server's environment: the path of the file. */
#define SHIM_CONTROL "ORBIT_SHIM_CONTROL"

enum shim_fault {
  SHIM_NONE,
  SHIM_WRITE,       /* the write fails with `error`, nothing of it is done */
  SHIM_SHORT_WRITE, /* half of it is done, and said so */
  SHIM_SYNC,        /* the sync fails with `error`, and what was written since the last one is lost in part */
  SHIM_POWER_CUT,   /* at a write or sync: the same loss, and the process is gone */
};

struct shim_control {
  _Atomic uint32_t fault;     /* enum shim_fault; set last. NONE again once it has happened */
  _Atomic uint32_t countdown; /* of the calls that the fault is about, how many pass before it */
  _Atomic int32_t error;
  _Atomic uint64_t seed;          /* of which unsynced writes are lost */
  _Atomic uint64_t file_size_max; /* the file grows no further: ENOSPC; 0: no such bound */
  _Atomic uint64_t happened;      /* faults; refusals for size are not among them */
  _Atomic uint64_t refused;       /* writes, for size */
  _Atomic uint64_t writes, syncs; /* of the log's file, all */
};

#endif
