/* Owns the room ahead of the log. A commit that meets a full disk half-way is a commit that nobody can mend, so the file is
 * lengthened with written zeroes between commits, and a full disk is met here, where it can still be refused.
 *
 * Room wanted: what the next commit may need, and the reserve. While more than half of the reserve is there, a call writes one
 * small chunk at most, so that a tick waits little; below half it writes as much as is missing, or says NO_SPACE. The half that
 * is left then is for what must still be written. */
#include <errno.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/guard.h"
#include "journal/internal.h"

/* What bytes of records may take at most: a record just over half a page takes a page, and small ones have their keys. */
static bool room_needed(const struct journal *journal, uint64_t bytes, uint64_t *ret_needed) {
  uint64_t needed;
  if (__builtin_mul_overflow(bytes, 2, &needed) || __builtin_add_overflow(needed, bytes / 4, &needed) ||
      __builtin_add_overflow(needed, log_transaction_pages_max * journal->page_bytes, &needed))
    return false;
  *ret_needed = needed;
  return true;
}

/* Writes zeroes at [from, to) and syncs them. 0 or errno. */
static int zeroes_write(int file, const uint8_t *zeroes, uint64_t from, uint64_t to) {
  while (from < to) {
    size_t piece = to - from < log_zero_piece_bytes ? (size_t)(to - from) : log_zero_piece_bytes;
    ssize_t put = pwrite(file, zeroes, piece, (off_t)from);
    if (put < 0 && errno != EINTR) return errno;
    if (put == 0) return ENOSPC;
    if (put > 0) from += (uint64_t)put;
  }
  return fdatasync(file) != 0 ? errno : 0;
}

/* Lengthens the file to `to`. After NO_SPACE it is as long as before. */
static enum status file_extend(struct journal *journal, uint64_t to) {
  mdb_filehandle_t file;
  int code = mdb_env_get_fd(journal->env, &file);
  must(code == 0);
  if (journal->zeroes == NULL) journal->zeroes = guard_calloc(1, log_zero_piece_bytes);
  /* file_bytes is never less than what LMDB uses, so that zeroes never fall on a page of the log. */
  must(journal->file_bytes >= journal->used_bytes);
  code = zeroes_write(file, journal->zeroes, journal->file_bytes, to);
  if (code == 0) {
    journal->file_bytes = to;
    journal->syncs++;
    return STATUS_OK;
  }
  enum status status = journal_error(code);
  if (ftruncate(file, (off_t)journal->file_bytes) != 0) status = STATUS_IO_ERROR;
  if (status == STATUS_NO_SPACE) return status;
  journal->poisoned = true;
  return STATUS_IO_ERROR;
}

bool journal_fits(const struct journal *journal, uint64_t bytes) {
  uint64_t needed, end;
  return !journal->read_only && room_needed(journal, bytes, &needed) &&
         !__builtin_add_overflow(journal->used_bytes, needed, &end) && end <= journal->file_bytes && end <= journal->map_bytes;
}

enum status journal_reserve(struct journal *journal, uint64_t bytes) {
  must(!journal->read_only);
  if (journal->poisoned) return STATUS_IO_ERROR;
  uint64_t needed, least, wanted;
  if (!room_needed(journal, bytes, &needed) || __builtin_add_overflow(journal->used_bytes, needed, &needed) ||
      __builtin_add_overflow(needed, journal->reserve_bytes / 2, &least) ||
      __builtin_add_overflow(needed, journal->reserve_bytes, &wanted) || least > journal->map_bytes)
    return STATUS_NO_SPACE;
  if (wanted > journal->map_bytes) wanted = journal->map_bytes;
  uint64_t now = journal->file_bytes;
  if (now >= wanted) return STATUS_OK;
  uint64_t from = now < least ? least - 1 : now;
  uint64_t to = (from / log_reserve_chunk_bytes + 1) * log_reserve_chunk_bytes;
  enum status status = file_extend(journal, to < journal->map_bytes ? to : journal->map_bytes);
  return status == STATUS_NO_SPACE && now >= least ? STATUS_OK : status;
}
