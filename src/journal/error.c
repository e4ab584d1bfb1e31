/* Owns what the codes of LMDB and of the system mean to those above. */
#include <errno.h>

#include "journal/internal.h"

enum status journal_error(int code) {
  switch (code) {
    case 0:
      return STATUS_OK;
    case ENOENT:
      return STATUS_NOT_FOUND;
    case EACCES:
    case EPERM:
    case EROFS:
      return STATUS_PERMISSION_DENIED;
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case MDB_MAP_FULL:
      return STATUS_NO_SPACE;
    case ENOMEM:
      return STATUS_NO_MEMORY;
    case MDB_READERS_FULL:
      return STATUS_UNAVAILABLE;
    case MDB_VERSION_MISMATCH:
    case MDB_INCOMPATIBLE:
      return STATUS_FOREIGN;
    case MDB_INVALID:
    case MDB_CORRUPTED:
    case MDB_PAGE_NOTFOUND:
    case MDB_PANIC:
    case MDB_NOTFOUND:
    case MDB_KEYEXIST:
      return STATUS_CORRUPT;
    default:
      return STATUS_IO_ERROR;
  }
}
