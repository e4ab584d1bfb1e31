/* The manifest of an export: what its file holds, from where, and how to find out whether both are still what they were. */
#ifndef ORBIT_REPLAY_MANIFEST_H
#define ORBIT_REPLAY_MANIFEST_H

#include "audit/audit.h"

enum { manifest_version = 1, file_digest_bytes = 32 };

/* The two files of an export. OUT is a directory when it is one, or ends with '/': events.FORMAT and manifest.json in it; else
 * OUT and OUT.manifest.json. */
struct export_paths {
  char *events, *manifest; /* owned */
  const char *name;        /* of the events' file, without its directory */
};
void export_paths_init(struct export_paths *paths, const char *out, const char *format);
void export_paths_clear(struct export_paths *paths);
bool export_is_directory(const char *out);

/* What was written. */
struct manifest {
  uint64_t first_seq, last_seq; /* what was looked at; 0: the log had nothing there */
  int64_t first_us, last_us;
  uint64_t chain_before, chain_after;
  uint64_t events, bytes, damaged;
  uint64_t counts[EVENT_type_end];
  uint8_t digest[file_digest_bytes]; /* BLAKE2b-256 of the events' file */
};
void manifest_write(struct buffer *out, const struct manifest *manifest, const struct request *request, const struct scan *scan,
                    const struct export_paths *paths);

/* Judges an export by its manifest, and against the log when --data names one. An exit code. */
int manifest_verify(const struct request *request);

#endif
