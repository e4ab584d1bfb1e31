/* Owns what is judged about a data directory before liblmdb touches it: owner, mode, and whether the file is as long as its own
 * first pages say. A page that is missing at the end would otherwise end the process with SIGBUS. */
#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

/* Where LMDB's meta page (data version 1, 64-bit) keeps what we look at. */
enum {
  meta_magic_at = 16,
  meta_version_at = 20,
  meta_page_bytes_at = 40,
  meta_last_page_at = 136,
  meta_size = 152,
  meta_data_version = 1
};
static const uint32_t meta_magic = 0xBEEFC0DE;

static uint32_t load32(const uint8_t *at) {
  uint32_t value;
  memcpy(&value, at, sizeof value);
  return le32toh(value);
}

static uint64_t load64(const uint8_t *at) {
  uint64_t value;
  memcpy(&value, at, sizeof value);
  return le64toh(value);
}

static enum status owner_check(const struct stat *found, const char *path, struct fault *fault) {
  if (found->st_uid == geteuid()) return STATUS_OK;
  return fault_set(fault, STATUS_PERMISSION_DENIED, NULL,
                   "%.160s belongs to user %u, this process runs as user %u: run it as the owner, or chown the data directory",
                   path, (unsigned)found->st_uid, (unsigned)geteuid());
}

enum status directory_inspect(const char *path, bool writable, struct fault *fault) {
  struct stat found;
  if (stat(path, &found) != 0 && (errno == ENOENT || errno == ENOTDIR))
    return fault_set(fault, STATUS_NOT_FOUND, NULL,
                     "%.160s: no such directory: name the data directory, or make one with orbitctl init", path);
  if (stat(path, &found) != 0) return journal_fault(fault, errno, path, "cannot look at it");
  if (!S_ISDIR(found.st_mode))
    return fault_set(fault, STATUS_NOT_FOUND, NULL, "%.160s is not a directory: name the data directory", path);
  enum status status = owner_check(&found, path, fault);
  if (status != STATUS_OK) return status;
  if (faccessat(AT_FDCWD, path, writable ? R_OK | W_OK | X_OK : R_OK | X_OK, AT_EACCESS) != 0)
    return fault_set(fault, STATUS_PERMISSION_DENIED, NULL, "%.160s cannot be %s (%s): give its owner mode 0700 on it", path,
                     writable ? "written" : "read", strerror(errno));
  return STATUS_OK;
}

/* Reads one meta page; what it says of the page size and the last page. */
static enum status meta_read(int file, off_t at, const char *path, uint32_t *ret_page_bytes, uint64_t *ret_last_page,
                             struct fault *fault) {
  uint8_t page[meta_size];
  ssize_t got = pread(file, page, sizeof page, at);
  if (got < 0) return journal_fault(fault, errno, path, "cannot read it");
  if (got < (ssize_t)sizeof page)
    return fault_set(fault, STATUS_CORRUPT, NULL,
                     "%.160s is cut off inside its first pages: put back a backup; nothing was changed", path);
  if (load32(page + meta_magic_at) != meta_magic)
    return fault_set(
        fault, STATUS_CORRUPT, NULL,
        "%.160s is not an Orbit log, or its first pages are damaged: run orbit-replay verify, then salvage, or put "
        "back a backup; nothing was changed",
        path);
  if (load32(page + meta_version_at) != meta_data_version)
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "%.160s was written by another version of LMDB (data format %" PRIu32
                     ", this program reads %d): use that "
                     "version",
                     path, load32(page + meta_version_at), meta_data_version);
  *ret_page_bytes = load32(page + meta_page_bytes_at);
  *ret_last_page = load64(page + meta_last_page_at);
  return STATUS_OK;
}

static enum status file_inspect(int file, const char *path, struct fault *fault) {
  struct stat found;
  if (fstat(file, &found) != 0) return journal_fault(fault, errno, path, "cannot look at it");
  enum status status = owner_check(&found, path, fault);
  if (status != STATUS_OK) return status;
  uint32_t page_bytes = 0, other_page_bytes = 0;
  uint64_t last_page = 0, other_last_page = 0, needed;
  status = meta_read(file, 0, path, &page_bytes, &last_page, fault);
  if (status != STATUS_OK) return status;
  long own_page_bytes = sysconf(_SC_PAGESIZE);
  if ((long)page_bytes != own_page_bytes)
    return fault_set(fault, STATUS_FOREIGN, NULL,
                     "%.160s has pages of %" PRIu32
                     " bytes, this machine's have %ld: open it on a machine like the one it was "
                     "made on",
                     path, page_bytes, own_page_bytes);
  status = meta_read(file, own_page_bytes, path, &other_page_bytes, &other_last_page, fault);
  if (status != STATUS_OK) return status;
  if (other_last_page > last_page) last_page = other_last_page;
  if (__builtin_add_overflow(last_page, 1, &needed) || __builtin_mul_overflow(needed, page_bytes, &needed) ||
      other_page_bytes != page_bytes)
    return fault_set(
        fault, STATUS_CORRUPT, NULL,
        "%.160s: the first pages are damaged: run orbit-replay verify, then salvage, or put back a backup; nothing "
        "was changed",
        path);
  if (needed > (uint64_t)found.st_size)
    return fault_set(fault, STATUS_CORRUPT, NULL,
                     "%.160s is cut off: %" PRIu64 " bytes are in use, the file has %" PRIu64
                     ": run orbit-replay salvage or put "
                     "back a backup; nothing was changed",
                     path, needed, (uint64_t)found.st_size);
  return STATUS_OK;
}

enum status log_file_inspect(const struct journal *journal, struct fault *fault) {
  cleanup(guard_free) char *path = NULL;
  if (asprintf(&path, "%s/data.mdb", journal->log_path) < 0) return fault_set(fault, STATUS_NO_MEMORY, NULL, "out of memory");
  cleanup(guard_close) int file = open(path, O_RDONLY | O_CLOEXEC);
  if (file < 0 && (errno == ENOENT || errno == ENOTDIR)) return STATUS_NOT_FOUND;
  if (file < 0) return journal_fault(fault, errno, path, "cannot open it");
  enum status status = directory_inspect(journal->log_path, !journal->read_only, fault);
  return status != STATUS_OK ? status : file_inspect(file, path, fault);
}
